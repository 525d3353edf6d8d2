"""A text as the tape plays it: the backwards that ran, and what the nodes of their graphs are to a reader."""

from __future__ import annotations

import ast
from typing import Literal, TypeAlias

from gradfix.defects import Span
from gradfix.source import Source
from gradfix.tape.checks.closing import close
from gradfix.tape.domain.events import Backward
from gradfix.tape.domain.graph import Node
from gradfix.tape.domain.paths import ALWAYS, forget
from gradfix.tape.effects.frameworks import ROWS
from gradfix.tape.handlers import HANDLERS
from gradfix.tape.interpreter.interpreter import Interpreter
from gradfix.tape.interpreter.program import Program
from gradfix.tape.machine.here import span_of
from gradfix.tape.machine.reports import Findings
from gradfix.tape.strangers.reaching import watch

Role: TypeAlias = Literal[
    "leaf", "constant", "operation", "plain", "cut", "backward", "clear", "step", "other"
]
"""What a row is: `plain` is an operation that records nothing, `other` a place that only explains."""
Edge: TypeAlias = Literal["recorded", "cut", "plain"]
WORK = 1_000_000


def played(source: Source) -> list[Backward]:
    """Play a text from its first line to its last; the backwards that ran."""
    forget()
    findings = Findings(source.path, source.text.encode().splitlines())
    vm = Interpreter(Program(findings, source.tree, None, ROWS), HANDLERS, WORK)
    watch(vm)
    with vm.here.within(path=ALWAYS):
        vm.run(source.tree.body)
    close([vm])
    return [event for event, _ in vm.machine.severed.backwards if not event.virtual]


def role_of(node: Node) -> Role:
    """What a node is to a reader."""
    if node.cut and any(parent.requires for parent in node.parents) and node.requires is not True:
        return "cut"
    if node.leaf is not None:
        return "leaf" if node.requires else "constant"
    return "plain" if node.requires is False else "operation"


def edge(parent: Node, node: Node) -> Edge:
    """How a value goes into an operation."""
    if node.cut and parent.requires:
        return "cut"
    return "plain" if parent.requires is False or node.requires is False else "recorded"


def whereabouts(place: object) -> Span:
    """Where a place is; at line 0 where it is nowhere in the text."""
    return span_of(place) if isinstance(place, ast.AST) else Span(0, 0, 0, 0)


def line_of(place: object) -> int:
    return whereabouts(place).line
