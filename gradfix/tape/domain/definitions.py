"""What a program defines: functions, classes, their instances, and the names they see."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from gradfix.tape.domain.values import NOTHING, External, Join, Value, stamp

if TYPE_CHECKING:
    from gradfix.tape.domain.paths import Path
    from gradfix.tape.domain.unread import Unread
    from gradfix.tape.domain.values import Joins, Lean, Truth


class Code:
    """A function's text: shared by all closures made from it."""

    __slots__ = ("entered", "every", "file", "name", "names", "node", "recorded", "size", "thawed", "yields")

    def __init__(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, file: str) -> None:
        self.node = node
        self.file = file
        self.name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
        self.entered = False
        self.recorded = False
        """Whether it has run where what it does may be recorded."""
        self.thawed = False
        """Whether it has then run on anything but an object whose parameters are all frozen."""
        self.size = 0
        """How many parts its text has, once somebody has counted."""
        self.yields: bool | None = None
        """Whether its own statements yield, once somebody has looked."""
        a = node.args
        self.names = tuple(arg.arg for arg in (*a.posonlyargs, *a.args))
        """The parameters that can be given by position."""
        self.every = (*self.names, *(arg.arg for arg in a.kwonlyargs))

    def is_first(self, node: ast.AST) -> bool:
        """Whether a node names the first parameter: a method's object."""
        return isinstance(node, ast.Name) and self.names[:1] == (node.id,)


class Scope:
    """The names of one function activation or module."""

    __slots__ = ("born", "globals", "names", "outer", "unread")

    def __init__(self, names: dict[str, Value], outer: Scope | None, globals: Scope | None) -> None:
        self.born = stamp()
        self.names = names
        self.outer = outer
        self.globals = globals if globals is not None else self
        self.unread: Unread | None = None
        """What of a module is executed only when somebody asks for it."""

    def outward(self) -> Iterator[Scope]:
        """This scope and those that a name is looked for in after it."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer if scope.outer is not None or scope is scope.globals else scope.globals


class Package(Value):
    """Another file of the project, executed for what it defines."""

    __slots__ = ("scope",)

    def __init__(self, scope: Scope) -> None:
        self.scope = scope


class Function(Value):
    """A function of the analysed source, with its closure, defaults and the grad mode that decorates it."""

    __slots__ = (
        "code",
        "decorators",
        "defaults",
        "owner",
        "scope",
        "setter",
        "suspends",
        "wrapped",
        "wrapper",
    )

    def __init__(self, code: Code, scope: Scope, defaults: dict[str, Value]) -> None:
        self.code = code
        self.scope = scope
        self.defaults = defaults
        self.decorators: tuple[tuple[Value, ast.expr], ...] = ()
        self.owner: Class | None = None
        self.suspends: Truth = False
        """Whether it is decorated as a context manager: a call runs nothing yet."""
        self.setter: Function | None = None
        """What is called where the property that it is gets a value."""
        self.wrapper: Value | None = None
        """What a decorator of the source has made of it, which is called in its place."""
        self.wrapped: Function | None = None
        """The function itself, as that decorator was given it."""

    def under(self, decorators: tuple[tuple[Value, ast.expr], ...]) -> Function:
        """The same function with these decorators alone."""
        twin = Function(self.code, self.scope, self.defaults)
        twin.decorators, twin.owner, twin.suspends = decorators, self.owner, self.suspends
        return twin


class Suspended(Value):
    """A call of a generator function, which runs as its items are asked for."""

    __slots__ = ("args", "function", "kwargs", "node", "receiver")

    def __init__(
        self,
        function: Function,
        args: tuple[Value, ...],
        kwargs: dict[str, Value],
        node: ast.AST,
        receiver: Value | None,
    ) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.node = node
        self.receiver = receiver


def _merged(bases: list[Class]) -> list[Class]:
    """The orders of some bases as one: each class behind those that are derived from it."""
    rows = [[*base.order] for base in bases]
    rows.append([*bases])
    found: list[Class] = []
    while rows := [row for row in rows if row]:
        heads = (row[0] for row in rows)
        head = next((one for one in heads if not any(one in row[1:] for row in rows)), rows[0][0])
        found.append(head)
        rows = [[one for one in row if one is not head] for row in rows]
    return found


class Class(Value):
    """A class of the analysed source."""

    __slots__ = ("attrs", "bases", "born", "file", "name", "node", "order")

    def __init__(self, node: ast.ClassDef, bases: list[Value], attrs: dict[str, Value], file: str) -> None:
        self.born = stamp()
        self.node = node
        self.name = node.name
        self.bases = bases
        self.attrs = attrs
        self.file = file
        self.order: tuple[Class, ...] = (self, *_merged([base for base in bases if isinstance(base, Class)]))
        """The method resolution order, as far as the bases are known."""

    def lookup(self, name: str) -> Value | None:
        """The attribute as the method resolution order finds it."""
        for cls in self.order:
            if name in cls.attrs:
                return cls.attrs[name]
        return None

    def externals(self) -> Iterator[str]:
        """The dotted names of the bases that other packages define."""
        for base in self.bases:
            if isinstance(base, Class):
                yield from base.externals()
            elif isinstance(base, External):
                yield base.path

    def opaque_base(self) -> bool:
        """Whether some base is neither in a file at hand nor a name of torch."""
        return any(
            base.opaque_base()
            if isinstance(base, Class)
            else not (isinstance(base, External) and base.path.startswith(("torch.", "builtins.", "object")))
            for base in self.bases
        )


class Instance(Value):
    """An object of a class of the analysed source; a module when the class is one."""

    __slots__ = ("attrs", "born", "cls", "lean", "module", "training")
    JOINS: ClassVar[Joins] = {"training": Join.TRUTH}

    def __init__(self, cls: Class, module: bool) -> None:
        self.born = stamp()
        self.cls = cls
        self.module = module
        self.lean: Lean = NOTHING
        """What it takes that it is a module."""
        self.attrs: dict[str, Value] = {}
        self.training: Truth = None


class Bound(Value):
    """A function with its first argument."""

    __slots__ = ("function", "receiver")

    def __init__(self, receiver: Value, function: Function) -> None:
        self.receiver = receiver
        self.function = function


class Partial(Value):
    """functools.partial."""

    __slots__ = ("args", "function", "kwargs")

    def __init__(self, function: Value, args: list[Value], kwargs: dict[str, Value]) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs


class Hook(NamedTuple):
    """A function that runs in the calls of a module."""

    function: Value
    module: Value
    before: bool
    """Whether it runs before the module's own code."""
    path: Path
    """Where it was registered."""
    handle: Value
    known: bool
    """Whether it runs in each call from there on, and in no other."""
    runs: list[int]
    """When it has run."""


class Method(Value):
    """A method of a value that isn't written in the analysed source."""

    __slots__ = ("name", "receiver")

    def __init__(self, receiver: Value, name: str) -> None:
        self.receiver = receiver
        self.name = name


class Super(Value):
    """`super()` inside a method."""

    __slots__ = ("cls", "receiver")

    def __init__(self, cls: Class | None, receiver: Value) -> None:
        self.cls = cls
        self.receiver = receiver
