"""Who does what as a program runs: the table of handlers that the interpreter is given."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from gradfix.tape.domain.graph import Tensor
    from gradfix.tape.domain.values import Args, Kwargs, Value
    from gradfix.tape.interpreter.interpreter import Interpreter
    from gradfix.tape.interpreter.occasions import Occasion
    from gradfix.tape.machine.machine import Machine

Evaluate: TypeAlias = "Callable[[Interpreter, Any], Value]"
Execute: TypeAlias = "Callable[[Interpreter, Any], str | None]"
"""How the block ended, or None where it goes on."""
Call: TypeAlias = "Callable[[Interpreter, Any, Args, Kwargs, Any], Value]"
Judge: TypeAlias = "Callable[[Interpreter, Any], object]"


@dataclass(frozen=True, slots=True)
class Handlers:
    """Who does what: one explicit table, made where all rooms are known."""

    evaluate: Mapping[type[ast.AST], Evaluate]
    execute: Mapping[type[ast.AST], Execute]
    calls: Mapping[type[Value], Call]
    """Who answers a call, by what is called; for Value itself: who answers where nobody else does."""
    attribute: Callable[[Interpreter, Value, str, ast.AST], Value]
    """Who reads `owner.name`."""
    set_attribute: Callable[[Interpreter, Value, str, Value, ast.AST, bool], None]
    """Who does `owner.name = value`."""
    assign: Callable[[Interpreter, ast.expr, Value, ast.AST], None]
    """Who binds a target to a value."""
    methods: Mapping[str, Callable[[Machine, Tensor, Args, Kwargs, ast.AST], Value]]
    """Methods of tensors that the recorded effects can't describe."""
    acts: Mapping[str, Callable[[Interpreter, Tensor, Args, Kwargs, ast.AST], Value]]
    """The same, where the program around them matters."""
    told: Mapping[type[Occasion], Sequence[Judge]]
    """Who judges what models tell of."""
