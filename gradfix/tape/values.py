"""The domain of the abstract tape: what a Python name can stand for, from constants to tensors in a graph."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

from gradfix.tape.paths import ALWAYS, Path

if TYPE_CHECKING:
    from gradfix.tape.effects import ModuleEffect

Truth: TypeAlias = "bool | None"
"""Three-valued: True, False, or None for unknown."""

Shape: TypeAlias = "tuple[int | None, ...] | None"
Lean: TypeAlias = frozenset[str]
"""The conventions (A to G) that a fact leans on."""

NOTHING: Lean = frozenset()


class Foreign:
    """A place in another file than the one under analysis."""

    __slots__ = ("node", "path")

    def __init__(self, node: ast.AST, path: str) -> None:
        self.node = node
        self.path = path


Place: TypeAlias = "ast.AST | Foreign | None"


class Value:
    """Anything that a Python expression can evaluate to. Mutable fields change through the trail only."""

    __slots__ = ()


class Const(Value):
    """A Python constant, known exactly."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


NONE = Const(None)
TRUE = Const(True)
FALSE = Const(False)


_stamp = count(1).__next__
"""Birth stamps: what was born inside a branch needn't be restored when the branch is undone."""


class Undefined(Value):
    """A name that a branch not taken would have bound."""

    __slots__ = ()


UNDEFINED = Undefined()


class Unknown(Value):
    """Not decided, and why; identity matters: one unknown read twice is the same value.

    `holds` are the values that went in (a call that gets them again through this one may change them).
    `tensor` is the tensor that it turned out to be when an operation used it as one; `requires` says whether
    that tensor is in a graph; `children` its attributes.
    """

    __slots__ = (
        "about",
        "bare",
        "born",
        "built",
        "children",
        "holds",
        "lean",
        "made",
        "module",
        "origin",
        "part",
        "requires",
        "tensor",
        "why",
    )

    def __init__(
        self, why: str, holds: tuple[Value, ...] = (), requires: Truth = None, lean: Lean = NOTHING
    ) -> None:
        self.born = _stamp()
        self.why = why
        self.holds = holds
        self.requires = requires
        self.lean = lean
        self.tensor: Tensor | None = None
        self.children: dict[str, Value] | None = None
        self.origin = ""
        """The dotted name of what was called to make it."""
        self.module: Opaque | None = None
        """The module that it turned out to be when its parameters went to an optimizer."""
        self.about: Storage | None = None
        """The memory that it is a fact of, where it says how much a tensor holds."""
        self.made: Node | None = None
        """The node that made it, where a call of a module that isn't known did."""
        self.bare: Truth = None
        """Whether nothing that it holds has a history."""
        self.built = False
        """Whether a module's constructor built it by a call that isn't known: a submodule (convention B)."""
        self.part = False
        """Whether it is made from what it holds, and from nothing else."""


class Alt(Value):
    """A few alternatives, each under the path on which it is the value."""

    __slots__ = ("options",)

    def __init__(self, options: tuple[tuple[Path, Value], ...]) -> None:
        self.options = options


class Seq(Value):
    """A list, tuple or set; `open` when it may hold more than `items`."""

    __slots__ = ("born", "items", "kind", "open", "place")

    def __init__(self, kind: str, items: list[Value], open: bool = False, place: Place = None) -> None:
        self.born = _stamp()
        self.kind = kind
        self.items = items
        self.open = open
        self.place = place


class Range(Value):
    """`range(...)` of known bounds."""

    __slots__ = ("range",)

    def __init__(self, value: range) -> None:
        self.range = value


class Slice(Value):
    """A slice in a subscript."""

    __slots__ = ("lower", "step", "upper")

    def __init__(self, lower: Value, upper: Value, step: Value) -> None:
        self.lower = lower
        self.upper = upper
        self.step = step


class Map(Value):
    """A dict with constant keys; `open` when it may hold more."""

    __slots__ = ("born", "items", "open", "place")

    def __init__(self, items: dict[Any, Value], open: bool = False, place: Place = None) -> None:
        self.born = _stamp()
        self.items = items
        self.open = open
        self.place = place


class Code:
    """A function's text: shared by all closures made from it."""

    __slots__ = ("body", "entered", "file", "generator", "locals", "name", "node")

    def __init__(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, file: str) -> None:
        self.node = node
        self.file = file
        self.name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
        self.entered = False
        self.generator: Truth = None


class Scope:
    """The names of one function activation or module."""

    __slots__ = ("born", "globals", "names", "outer")

    def __init__(self, names: dict[str, Value], outer: Scope | None, globals: Scope | None) -> None:
        self.born = _stamp()
        self.names = names
        self.outer = outer
        self.globals = globals if globals is not None else self


class Package(Value):
    """Another file of the project, executed for what it defines."""

    __slots__ = ("scope",)

    def __init__(self, scope: Scope) -> None:
        self.scope = scope


class Function(Value):
    """A function of the analysed source, with its closure, defaults and the grad mode that decorates it."""

    __slots__ = ("code", "decorators", "defaults", "owner", "scope")

    def __init__(self, code: Code, scope: Scope, defaults: dict[str, Value]) -> None:
        self.code = code
        self.scope = scope
        self.defaults = defaults
        self.decorators: tuple[tuple[Value, ast.expr], ...] = ()
        self.owner: Class | None = None


class Class(Value):
    """A class of the analysed source."""

    __slots__ = ("attrs", "bases", "born", "file", "name", "node")

    def __init__(self, node: ast.ClassDef, bases: list[Value], attrs: dict[str, Value], file: str) -> None:
        self.born = _stamp()
        self.node = node
        self.name = node.name
        self.bases = bases
        self.attrs = attrs
        self.file = file

    def lookup(self, name: str) -> Value | None:
        """The attribute as the method resolution order finds it, as far as the bases are known."""
        if name in self.attrs:
            return self.attrs[name]
        for base in self.bases:
            if isinstance(base, Class) and (found := base.lookup(name)) is not None:
                return found
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

    __slots__ = ("attrs", "born", "cls", "module", "training")

    def __init__(self, cls: Class, module: bool) -> None:
        self.born = _stamp()
        self.cls = cls
        self.module = module
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


class External(Value):
    """A name of a package that isn't analysed, by its full dotted path."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path


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


class Layer(Value):
    """A module of torch.nn, `kind` by name; containers hold `items`; parameters and buffers are in attrs."""

    __slots__ = ("args", "attrs", "born", "effect", "inplace", "items", "kind", "open", "place", "training")

    def __init__(self, kind: str, effect: ModuleEffect | None, args: dict[str, Value], place: Place) -> None:
        self.born = _stamp()
        self.kind = kind
        self.effect = effect
        self.args = args
        self.place = place
        self.attrs: dict[str, Value] = {}
        self.items: dict[str, Value] | None = None
        self.open = False
        self.inplace: Truth = False
        self.training: Truth = None


class Opaque(Value):
    """A module of unknown class: its call requires grad through `weights`, one leaf that stands for all."""

    __slots__ = ("born", "children", "lean", "of", "weights")

    def __init__(self, of: Value, weights: Tensor, lean: Lean) -> None:
        self.born = _stamp()
        self.of = of
        self.weights = weights
        self.lean = lean
        self.children: dict[str, Value] = {}


class Weights(Value):
    """`module.parameters()`: the leaves of a module, `complete` when they are all of them."""

    __slots__ = ("complete", "leaves", "named", "of")

    def __init__(self, of: Value, leaves: list[Tensor], complete: bool, named: bool = False) -> None:
        self.of = of
        self.leaves = leaves
        self.complete = complete
        self.named = named


class Optimizer(Value):
    """An optimizer over leaves; `leaves` None when it isn't known what it holds."""

    __slots__ = ("after", "born", "complete", "fused", "kind", "lean", "leaves", "name", "place", "stepped")

    def __init__(self, kind: str, leaves: list[Tensor], complete: bool, place: Place) -> None:
        self.born = _stamp()
        self.kind = kind
        self.leaves = leaves
        self.complete = complete
        self.place = place
        self.lean: Lean = NOTHING
        self.fused: Truth = False
        self.name = ""
        self.stepped = False
        self.after: Any = None
        """The backward that ran last before its latest step."""


class Scaler(Value):
    """An AMP GradScaler, or the value that `scaler.scale(loss)` returned."""

    __slots__ = ("born", "enabled", "place", "unscaled")

    def __init__(self, enabled: Truth, place: Place) -> None:
        self.born = _stamp()
        self.enabled = enabled
        self.place = place
        self.unscaled: dict[int, bool] = {}


class Mode(Value):
    """A grad mode as a context manager or decorator: what it sets, and the call that made it."""

    __slots__ = ("kind", "place", "sets")

    def __init__(self, kind: str, sets: Value, place: Place) -> None:
        self.kind = kind
        self.sets = sets
        self.place = place


class Storage:
    """The memory of one or more tensors: its version is the number of writes that count."""

    __slots__ = ("argument", "base", "generation", "inference", "savers", "writes")

    def __init__(self, argument: bool = False) -> None:
        self.writes: list[Write] = []
        self.savers: list[Saved] = []
        self.generation = 0
        self.base: Tensor | None = None
        self.inference: Place = None
        """Where the inference mode was entered in which it was made."""
        self.argument = argument
        """Whether it came in as an argument of a function whose callers aren't known."""


class Write:
    """One in-place write to a storage."""

    __slots__ = ("aliased", "facts", "form", "path", "place", "silent")

    def __init__(self, place: Place, path: Path, form: str, silent: bool) -> None:
        self.place = place
        self.path = path
        self.form = form
        """augassign, setitem, method, keyword, out, module, step, buffer."""
        self.silent = silent
        """Whether it leaves the version counter alone (`.data`, fused optimizers)."""
        self.facts: dict[str, Any] = {}


class Saved:
    """What a graph node keeps of a storage, at the version that it had."""

    __slots__ = ("lean", "node", "path", "storage")

    def __init__(self, storage: Storage, node: Node, path: Path, lean: Lean) -> None:
        self.storage = storage
        self.node = node
        self.path = path
        self.lean = lean


class Spoil:
    """A saved value and the write that overwrote it."""

    __slots__ = ("saved", "write")

    def __init__(self, saved: Saved, write: Write) -> None:
        self.saved = saved
        self.write = write


class Node:
    """An operation in the graph (or outside it: `requires` False), with what went in.

    `cut` marks an edge that carries no gradient: how it was cut (detach, item, no_grad ...) and where.
    `may` marks an operation that isn't known: what went in may or may not be what comes out.
    """

    __slots__ = (
        "clean",
        "cut",
        "cut_place",
        "facts",
        "freed",
        "guards",
        "leaf",
        "lean",
        "may",
        "number",
        "op",
        "parents",
        "path",
        "place",
        "requires",
        "saves",
        "spoiled",
    )

    def __init__(self, op: str, place: Place, parents: tuple[Node, ...], requires: Truth) -> None:
        self.op = op
        self.place = place
        self.parents = parents
        self.requires = requires
        self.guards: tuple[Path, ...] | None = None
        self.path: Path = ALWAYS
        self.lean: Lean = NOTHING
        self.cut = ""
        self.cut_place: Place = None
        self.may = False
        self.leaf: Tensor | None = None
        self.saves = False
        """Whether it keeps anything, so that a second backward finds it freed."""
        self.freed: list[tuple[Any, Path]] | None = None
        self.spoiled: list[Spoil] | None = None
        self.clean = -1
        self.number = False
        """Whether the value is a plain Python number."""
        self.facts: dict[str, Any] | None = None


class Slot:
    """The `.grad` of a leaf: what was added, used by steps, and cleared, in order."""

    __slots__ = ("events", "tensor")

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.tensor: Tensor | None = None
        """What `.grad` reads as."""


class Tensor(Value):
    """A tensor: which memory it looks at, which node made it, whether backward reaches it."""

    __slots__ = (
        "base",
        "born",
        "created",
        "data_of",
        "dtype",
        "generation",
        "grad_of",
        "layout",
        "leaf",
        "lean",
        "name",
        "node",
        "parameter",
        "place",
        "requires",
        "retained",
        "seen",
        "shape",
        "slot",
        "storage",
        "view",
    )

    def __init__(self, node: Node, storage: Storage, requires: Truth, leaf: Truth) -> None:
        self.born = _stamp()
        self.node = node
        self.storage = storage
        self.requires = requires
        self.leaf = leaf
        self.lean: Lean = node.lean
        self.shape: Shape = None
        self.dtype = ""
        """float, half, int, bool, or "" for unknown."""
        self.layout: Truth = None
        """Whether it is contiguous."""
        self.base: Tensor | None = None
        self.view = ""
        """"" for its own memory; plain, many (chunk, split) or no_grad for a view; loose (detach, .data)."""
        self.generation = 0
        self.seen = 0
        """How many writes its memory had seen when the view was made."""
        self.slot: Slot | None = None
        self.parameter = False
        self.retained = False
        self.place: Place = node.place
        self.name = ""
        self.grad_of: Tensor | None = None
        """The leaf whose `.grad` this is."""
        self.data_of: Tensor | None = None
        """The tensor whose `.data` this is."""

    def gradient(self) -> Slot:
        """Its gradient slot."""
        if self.slot is None:
            self.slot = Slot()
        return self.slot


class Number(Value):
    """A Python number or array that was converted from a tensor: outside the graph, with its origin."""

    __slots__ = ("form", "kind", "node", "place")

    def __init__(self, node: Node, place: Place, kind: str) -> None:
        self.node = node
        self.place = place
        self.kind = kind
        """number, list or array."""
