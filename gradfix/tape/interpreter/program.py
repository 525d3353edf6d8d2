"""What is read of the program, once for all that is executed of it: files, functions, classes, imports."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradfix.tape.domain.definitions import Class, Code, Function, Package
    from gradfix.tape.domain.values import Value
    from gradfix.tape.effects.frameworks import Row
    from gradfix.tape.interpreter.limits import Resolver
    from gradfix.tape.machine.reports import Findings


class Program:
    """One file and what it imports, as far as it has been read."""

    def __init__(
        self, findings: Findings, tree: ast.Module, resolve: Resolver | None, rows: Mapping[str, Row]
    ) -> None:
        self.findings = findings
        self.tree = tree
        self.resolve = resolve
        self.rows = rows
        """What is known of frameworks."""
        self.functions: list[Function] = []
        self.codes: dict[int, Code] = {}
        self.classes: list[Class] = []
        self.packages: dict[str, Package] = {}
        """Other files of the project, as far as somebody has asked for what they define."""
        self.contents: dict[str, bytes] = {}
        """Their texts."""
        self.import_files: dict[str, str] = {}
        self.resolved: dict[str, Value | None] = {}
        self.stars: list[str] = []
        self.built_in: frozenset[str] | None = None
        """The names of classes that are built into others, once they have been looked for."""
        self.calls: dict[str, list[ast.Call]] = {}
        """The calls in this file, by the last name of what is called; read when somebody asks."""
        self.stored: dict[int, frozenset[str]] = {}
        """The attributes that each method assigns."""
        self.called: dict[int, frozenset[str]] = {}
        """The methods that each class calls."""
        self.jumps: dict[int, frozenset[str]] = {}
        """How blocks can be left in one arm of a branch."""
        self.telling: dict[Hashable, list[int]] = {}
        """The turns that the tests of a counted loop tell apart."""
        self.loads: dict[int, dict[str, list[int]]] = {}
        """The lines on which each function reads its names."""
        self.around: dict[int, dict[int, ast.AST]] = {}
        """The statement without others in it that each part of a function stands in."""
        self.parting: dict[int, bool] = {}
        """Whether the arms of branches differ in what requires grad."""
        self.switching: dict[str, list[int]] = {}
        """The lines of each file with a word of what switches that."""
        self.setting: dict[str, list[int]] = {}
        """The lines of each file that set the grad mode by a statement."""
        self.sets: tuple[int, bool] | None = None
        """Whether one of so many files sets it where somebody may come by."""
        self.compiles: bool | None = None
        """Whether something in this file may be compiled or exported; read when somebody asks."""
        self.unfinished: list[type[Exception]] = []
        """Why entries were left before their end."""
