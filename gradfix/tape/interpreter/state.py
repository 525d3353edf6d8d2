"""What the interpreter keeps beside the machine: the program's parts, notes, and what strangers got."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from gradfix.defects import Fact, Span
from gradfix.tape.domain.definitions import Code, Function, Package
from gradfix.tape.domain.graph import Node, Tensor
from gradfix.tape.domain.values import Place, Value
from gradfix.tape.effects.frameworks import ROWS, Row
from gradfix.tape.interpreter.limits import Resolver


class Program:
    """What has been read of the program: its files, its imports, its functions and classes."""

    def __init__(self, resolve: Resolver | None) -> None:
        self.resolve = resolve
        self.module: ast.Module | None = None
        self.functions: list[Function] = []
        self.codes: dict[int, Code] = {}
        self.classes: list[Any] = []
        self.jumps: dict[int, frozenset[str]] = {}
        self.stars: list[str] = []
        self.import_files: dict[str, str] = {}
        self.resolved: dict[str, Value | None] = {}
        self.packages: dict[str, Package] = {}
        self.unbound: dict[str, Value] = {}
        self.built_in: frozenset[str] | None = None
        """The names of classes that are built into others, once they have been looked for."""
        self.rows: Mapping[str, Row] = ROWS
        """What is known of frameworks."""


class Notes:
    """What is noted while a program runs, and judged when something else has happened or at the end."""

    def __init__(self) -> None:
        self.accumulated: dict[Span, list[Any]] = {}
        self.put_by: list[tuple[Span, Node, int]] = []
        """Results that were put by after their graph was walked, and when."""
        self.totals: list[tuple[Node, Span]] = []
        """The sums that results were added to after their graph was walked, and where."""
        self.through_totals: dict[Span, set[Span]] = {}
        """What was put by and keeps a walked graph through such sums alone, with the places of those."""
        self.passed_on: set[int] = set()
        """Nodes whose tensors were returned or given to calls that aren't known."""
        self.read_grads: list[Tensor] = []
        self.plain_leaves: list[tuple[Any, str, Tensor, Tensor]] = []
        """Tensors of modules that require grad, and are no parameters."""
        self.replacements: list[tuple[Value, Value, Place]] = []
        self.homeless: list[tuple[list[int], Place, dict[str, Fact]]] = []
        """Layers in plain containers of a module, as long as nobody else registers them."""
        self.buffers: set[tuple[int, Any]] = set()
        """The attributes of objects that are registered as buffers."""
        self.moved = False
        """Whether something was moved to a device."""
        self.hooked = False
        self.exported = False
        """Whether a function of autograd was run that has no backward."""
        self.froze = False
        """Whether parameters were told to require no grad."""
        self.uncalled = False
        """Whether a function runs that was entered on its own, as nobody calls it here."""
        self.compared: ast.AST | None = None
        """What is looked at to see whether it is None."""
        self.demanded: set[ast.AST] = set()
        """What is compared in an assertion: it has to hold."""
        self.asked_for: list[Tensor] = []
        """Results of which somebody has asked whether they have a gradient."""
        self.keep_alive: list[Value] = []
        """What path conditions are about: their keys are identities."""


class Strangers:
    """What code that isn't known was given, and what came back from it."""

    def __init__(self) -> None:
        self.handed: list[Value] = []
        """Tensors given to calls that aren't known, while a forward is entered on its own."""
        self.wrapped: dict[int, tuple[Value, Row, tuple[Value, ...]]] = {}
        """Modules that a framework has wrapped, with what else it was given."""
        self.supposed: dict[int, Any] = {}
        """Values that are taken for optimizers by their use."""
        self.early: list[Any] = []
        """Steps of such values that came before their backward."""
        self.loose: dict[int, Value] = {}
        """What was handed to calls that aren't known."""
        self.results: dict[int, tuple[Value, ast.AST]] = {}
        """What calls that aren't known have returned, and the calls."""
        self.elements: dict[int, Value] = {}
        """What loops have taken out of values that came in from elsewhere."""
        self.fed: set[int] = set()
        """Calls through whose results a backward has run."""
        self.root: Code | None = None
        """The function whose result a framework backpropagates."""
