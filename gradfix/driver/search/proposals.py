"""From what is known of an argument to what it might be given, the best first."""

from __future__ import annotations

import contextlib
import inspect
from collections import Counter
from collections.abc import Iterator
from typing import Any

from torch import nn

from gradfix.driver.search import typed
from gradfix.driver.search.facts import Facts
from gradfix.driver.search.roles import Role
from gradfix.driver.search.sources import parameters
from gradfix.driver.search.stepping import loss, optimizer
from gradfix.driver.values import Argument, Config, Entries, Items, Made, Number, Source, Tensor, Value

NN = "from torch import nn"
TORCH = "import torch"
IMAGE = 32
PLAIN: dict[Role, tuple[Any, ...]] = {
    "count": (2, 1),
    "heads": (2, 4, 1),
    "kernel": (3, 1),
    "one": (1, 2),
    "zero": (0, 1),
    "share": (0.1,),
    "small": (1e-3,),
    "flag": (False, True),
    "size": (4,),
    "axis": (1, -1),
    "string": ("relu", "mean"),
    "path": ("runs",),
    "vocabulary": (10,),
}
WIDE = 16
BATCHES = 4
MOST_FITTING = 3
STEPS = {"step", "zero_grad", "param_groups"}
"""What is read of an optimizer alone."""
SPECIFIC = (
    "path",
    "heads",
    "count",
    "kernel",
    "one",
    "zero",
    "share",
    "small",
    "vocabulary",
    "axis",
    "flag",
    "size",
)


class Proposer:
    """Makes proposals; no two widths that it gives are alike: so torch's messages tell which is meant."""

    def __init__(self, near: dict[str, Any]) -> None:
        self.near = near
        """The names of the module that the target is in."""
        self.given = 0
        self.module = ""
        """The argument of the same call that is a module."""
        self.steps = False
        """Whether there is an optimizer beside it."""
        self.subject: tuple[str, ...] = ()
        """How a program says the modules of what was built."""
        self.trains = False
        """Whether what is called goes backward itself: what is only counted with is a number then."""
        self.modules: list[tuple[str, str, list[str]]] = []
        """The project's classes of modules, with their attributes."""

    def siblings(self, known: dict[str, Facts]) -> None:
        """What the other arguments of the same call are."""
        steps = {name for name, one in known.items() if STEPS & {*one.attributes} and not one.module}
        modules = sorted(known, key=lambda name: not known[name].module)
        fits = (name for name in modules if known[name].module or known[name].called)
        self.steps, self.module = bool(steps), next((name for name in fits if name not in steps), "")

    def width(self) -> int:
        """A width that no other argument has: a multiple of eight."""
        return 8 + 8 * self.given

    def of(self, facts: Facts, annotation: Any, building: bool) -> list[Value]:
        """What an argument might be given."""
        self.given += 1
        word, inner = typed.known(annotation)
        found = [*self._annotated(word, inner, facts, building), *self._used(facts, building)]
        if facts.optional or facts.flag:
            found.append(Number(None))
        if not found or building or not (facts.module or facts.called or STEPS & {*facts.attributes}):
            found += self._last(facts, building)
        return list(dict.fromkeys(found))

    def _annotated(self, word: str, inner: Any, facts: Facts, building: bool) -> Iterator[Value]:
        if word == "tensor" or (word == "int" and facts.index and not building):
            yield from self.tensors(facts)
        elif word == "int":
            yield from self.numbers(facts)
        elif word == "float":
            yield Number(0.1)
            yield Number(1.0)
        elif word == "flag":
            yield from (Number(False), Number(True))
        elif word == "string":
            yield from map(Number, [*facts.strings, "relu"])
        elif word == "literal":
            yield from map(Number, inner)
        elif word == "enum":
            yield from (Source(f"{inner.__name__}.{one.name}", needed(inner)) for one in inner)
        elif word in ("list", "tuple"):
            yield self._items(word, inner, facts, building)
        elif word == "optimizer":
            yield self.optimizer()
        elif word == "module":
            yield from self._module(inner, facts)
        elif word == "object":
            yield from self._object(inner, facts)
        elif word in ("device", "dtype"):
            yield Source('torch.device("cpu")' if word == "device" else "torch.float32", (TORCH,))
        elif word in ("class", "callable"):
            yield from self._called(facts, building)

    def _used(self, facts: Facts, building: bool) -> Iterator[Value]:
        """By its uses, the telling ones first."""
        yield from map(Number, dict.fromkeys(facts.strings))
        if facts.root and not building:
            yield loss([self.module] if self.module else self.subject)
        tensor = facts.tensor + facts.index + facts.mask + facts.label + facts.share
        if facts.device:
            yield Number("cpu", free=False)
        if facts.hidden is not None:
            pair, shape = facts.hidden
            one = Tensor(shape)
            yield Items((one, one), "tuple") if pair else one
        if facts.result is not None and STEPS & {*facts.result.attributes} and facts.built:
            yield Source("torch.optim.SGD", (TORCH,))
        yield from self._fitting(facts)
        if facts.called:
            yield from self._called(facts, building)
        elif facts.module:
            yield from self._layers()
        elif STEPS & {*facts.attributes}:
            yield self.optimizer()
        elif facts.mapping and not tensor:
            yield Entries(tuple((repr(key), self._entry(building)) for key in dict.fromkeys(facts.keys)))
        elif facts.attributes and not facts.sequence:
            yield Config(())
        elif tensor and not (building and (facts.roles or facts.number)):
            yield from self.tensors(facts)
        if facts.sequence and not tensor:
            items = self._items("tuple" if facts.parts else "list", (), facts, building)
            if facts.attributes and not building:
                whole = Argument("batch_size", Number(None, free=False))
                yield Made("torch.utils.data.DataLoader", (Argument("", items, False), whole), (TORCH,))
            yield items
        if facts.number and not tensor and self.trains and not facts.roles:
            yield Number(0.5)
        if facts.number and not tensor and not building:
            yield next(iter(self.tensors(facts)))
        if facts.roles or (facts.number and (building or not tensor)):
            yield from self.numbers(facts)
        if facts.flag and not tensor:
            yield from (Number(False), Number(True))

    def _last(self, facts: Facts, building: bool) -> Iterator[Value]:
        """Where nothing is known."""
        if building:
            yield Number(self.width())
            yield from (Config(()), Made("nn.Identity", (), (NN,)), Number(None))
        else:
            yield from [Number(1)] if self.trains else []
            yield from self.tensors(facts)
            yield from (Number(None), Number(2), Config(()))

    def _entry(self, building: bool) -> Value:
        return Number(self.width()) if building else Tensor((2, self.width()))

    def _items(self, form: str, inner: Any, facts: Facts, building: bool) -> Items:
        items = facts.items or Facts()
        self.trains = False  # what comes in batches is no plain number
        named = [one for one in inner or () if one is not ...]
        count = (
            len(named)
            if form == "tuple" and len(named) > 1
            else facts.unpacked or (2 if building else BATCHES)
        )
        of_each = named if len(named) == count else [named[0] if named else inspect.Parameter.empty] * count
        facts_of = [facts.parts.get(at, items) for at in range(count)]
        first = [
            self.of(its, one, building and not its.tensor)[0]  # what is kept of data is data
            for its, one in zip(facts_of, of_each, strict=True)
        ]
        if not facts.parts and not named and form == "list":
            first = [first[0]] * count
        return Items(tuple(first), "tuple" if form == "tuple" else "list")

    def _module(self, cls: type, facts: Facts) -> Iterator[Value]:
        if cls is not nn.Module:
            yield from self._object(cls, facts)
        yield from self._layers() if not facts.built else reversed(list(self._layers()))

    def _object(self, cls: type, facts: Facts) -> Iterator[Value]:
        """Of a class of the project: made by its own constructor, as simply as that goes."""
        heirs: list[type] = cls.__subclasses__()[:MOST_FITTING] if cls.__module__ != "builtins" else []
        for one in (cls, *heirs):  # what a class leaves open, one that inherits from it may have
            if one.__module__ != "builtins" and not inspect.isabstract(one):
                made = self.made(one)
                if made is not None:
                    yield made
        if facts.attributes:
            yield Config(())

    def made(self, cls: Any, deep: int = 0) -> Made | None:
        """What its constructor makes when it is given what it asks for; None: that goes too deep."""
        from gradfix.driver.search.uses import Reader

        found: list[Argument] = []
        for name, one in parameters(cls).items():
            if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD) or one.default is not one.empty:
                continue
            facts = Facts()
            called = cls.__init__ if isinstance(cls, type) else cls  # type: ignore[misc]
            Reader(facts).parameter(called, name, None, cls if isinstance(cls, type) else None)
            annotation = typed.resolved(one.annotation, called)
            if deep > 2 or annotation is cls:
                return None
            found.append(
                Argument(name, self.of(facts, annotation, True)[0], one.kind is not one.POSITIONAL_ONLY)
            )
        return Made(cls.__name__, tuple(found), needed(cls))

    def _called(self, facts: Facts, building: bool) -> Iterator[Value]:
        """A class, a function or a module that is called."""
        if facts.module or not facts.built:
            yield from self._parts(facts, building)
            return
        if min(facts.called) == 0:
            yield from (Source("nn.ReLU", (NN,)), Source("nn.GELU", (NN,)))
            return
        yield from self._near(facts)
        yield from (
            Source(f"nn.{name}", (NN,)) for name in ("BatchNorm2d", "LayerNorm", "Linear", "BatchNorm1d")
        )

    def _parts(self, facts: Facts, building: bool) -> Iterator[Value]:
        """A layer, a model or a criterion that comes from elsewhere."""
        most = max(facts.called, default=1)
        if (most == 2 or facts.spread) and not facts.module:
            yield from (Made(f"nn.{name}", (), (NN,)) for name in ("MSELoss", "CrossEntropyLoss"))
        if most <= 1:
            learns = facts.module or facts.tensor or self.steps or not building
            yield from self._layers() if learns else reversed(list(self._layers()))
        yield Source("lambda x, *_, **__: x")
        yield Source("lambda x, *_, **__: (x, None)")
        yield Made("nn.Identity", (), (NN,))

    def _layers(self) -> Iterator[Value]:
        """Modules that fit by their shape."""
        wide = tuple(Argument("", Number(WIDE), keyword=False) for _ in range(2))
        yield Made("nn.Linear", wide, (NN,))
        yield Made("nn.Identity", (), (NN,))

    def optimizer(self) -> Value:
        """A real one, over the parameters of what is handed over beside it."""
        return optimizer([self.module] if self.module else [])

    def _fitting(self, facts: Facts) -> Iterator[Value]:
        """The project's own modules that have all that is read of it, those first that have little else."""
        wanted = {one for one in facts.attributes if not hasattr(nn.Module, one)}
        if facts.module and not facts.spread:
            wanted |= {f"forward/{count}" for count in facts.called if count > 1}
        if facts.built or not wanted or not (facts.module or facts.called or facts.tensor):
            return
        fits = [one for one in self.modules if wanted <= {*one[2]}]
        for module, name, _ in sorted(fits, key=lambda one: len(one[2]))[:MOST_FITTING]:
            names: dict[str, Any] = {}
            with contextlib.suppress(Exception):  # whatever an import of the project's may raise
                exec(f"from {module} import {name}", names)
                made = self.made(names[name])
                if made is not None:
                    yield made

    def _near(self, facts: Facts) -> Iterator[Value]:
        """The classes of the same module that have what is read of it and may be called so."""
        for name, one in self.near.items():
            if (
                isinstance(one, type)
                and issubclass(one, nn.Module)
                and not one.__module__.startswith("torch.")
            ):
                wanted = [each for each in parameters(one).values() if each.default is each.empty]
                fits = len(wanted) <= min(facts.called) <= len(parameters(one))
                if fits and all(hasattr(one, each) for each in facts.attributes):
                    yield Source(name, needed(one))

    def numbers(self, facts: Facts) -> Iterator[Value]:
        """As a number, by the most telling role."""
        counted = Counter(facts.roles)
        known = [role for role in SPECIFIC if role in counted]
        if not known:
            yield from map(Number, dict.fromkeys(one for one in facts.constants if one > 1))
        for role in known[:2]:
            yield from map(Number, PLAIN[role])  # type: ignore[index]
        if "string" in counted:
            yield from map(Number, PLAIN["string"])
        yield Number(self.width())
        if not known:
            yield from (Number(2), Number(1))

    def tensors(self, facts: Facts) -> Iterator[Value]:
        """As a tensor, in every shape that it may have."""
        for ndim in self._dimensions(facts):
            if facts.label > facts.tensor:
                yield Tensor((2,), "index", 2)
            elif facts.index and facts.index >= facts.tensor:
                shape = (2, 6, 6, 6)[:ndim]
                yield Tensor(shape, "index", facts.high or 4)
            elif facts.mask and facts.mask >= facts.tensor:
                yield Tensor(self.shape(ndim, facts), "mask")
            else:
                yield Tensor(self.shape(ndim, facts), "share" if facts.share else "float")

    def _dimensions(self, facts: Facts) -> list[int]:
        least = max([facts.least, *(at + 1 if at >= 0 else -at for at in facts.dims)], default=0)
        first = [facts.ndim] if facts.ndim >= least and facts.ndim else []
        if facts.label > facts.tensor:
            rest = [1, 2]
        elif facts.index >= max(facts.tensor, 1) or -1 in facts.dims:
            rest = [2, 3, 1, 4]
        elif 1 in facts.dims:
            rest = [4, 3, 2, 5]
        else:
            rest = [3, 4, 2, 1] if least > 2 else [2, 4, 3, 1]
        return list(dict.fromkeys([*first, *(one for one in rest if one >= least)])) or [least]

    def shape(self, ndim: int, facts: Facts) -> tuple[int, ...]:
        """The sizes, those known where they belong."""
        if ndim >= 4:
            sizes = [2, 3, *([8] if ndim == 5 else []), *([IMAGE] * 2)][:ndim]
        else:
            sizes = ([2, *([6] if ndim == 3 else []), self.width()] if ndim > 1 else [2])[:ndim]
        for at, size in facts.dims.items():
            if -ndim <= at < ndim:
                sizes[at] = size
        return tuple(sizes)


def needed(cls: Any) -> tuple[str, ...]:
    """The line that imports a class of the project."""
    module = getattr(cls, "__module__", "")
    return (f"from {module} import {cls.__name__}",) if module not in ("", "builtins", "__main__") else ()
