"""What the grammar knows while it writes a program: the lines so far and the variables in reach."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from .choose import Chooser

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Var:
    """A tensor variable: its shape, what it is, and whether it probably carries a gradient."""

    name: str
    shape: Shape
    role: str = "node"
    """leaf: requires grad; constant: does not; node: computed; many: one of several views."""
    live: bool = True


@dataclass
class Writer:
    """Lines with indentation, and the scope that the next statement sees."""

    c: Chooser
    lines: list[str] = field(default_factory=list)
    depth: int = 0
    vars: dict[str, Var] = field(default_factory=dict)
    flags: list[str] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)
    loops: list[str] = field(default_factory=list)
    counter: list[int] = field(default_factory=lambda: [0])
    wild: int = 30
    """How many in a hundred statements may do something that torch could refuse."""
    grad: bool = True
    opaque: list[str] = field(default_factory=list)
    driver: str = ""
    """What runs behind the program and is not shown to the tape."""

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def fresh(self, stem: str) -> str:
        self.counter[0] += 1
        return f"{stem}{self.counter[0]}"

    def bind(self, name: str, shape: Shape, role: str = "node", live: bool = True) -> Var:
        var = Var(name, shape, role, live)
        self.vars[name] = var
        return var

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """An indented block whose own variables go out of reach behind it."""
        self.line(header)
        before, start = dict(self.vars), len(self.lines)
        self.depth += 1
        yield
        if len(self.lines) == start:
            self.line("pass")
        self.depth -= 1
        self.vars = {
            name: replace(var, live=var.live and self.vars[name].live)
            for name, var in before.items()
            if name in self.vars
        }

    def tensors(self, shape: Shape | None = None, roles: str = "leaf constant node many") -> list[Var]:
        allowed = roles.split()
        found = [v for v in self.vars.values() if v.role in allowed]
        return [v for v in found if shape is None or v.shape == shape]

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"
