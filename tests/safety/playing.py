"""Plays a program under torch and keeps what it held, passed on and stepped, in order."""

from __future__ import annotations

import contextlib
import importlib
import io
import pkgutil
import random
import re
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias
from unittest import mock

import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from wild.witness import owned, reached

from .holding import Array, Held, Values, around, array, same
from .reading import Reads, Touched, of_gradients, touching

PROGRAM = "program.py"
Spared: TypeAlias = Literal["", "counted", "all"]
Sort: TypeAlias = Literal["begin", "gradient", "step", "end"]
REFUSED = re.compile("is being used in an in-place operation|is being modified inplace")
"""What torch says of a write that only is refused where it would be recorded."""
NUMBERS = ("item", "tolist", "numpy", "__float__", "__int__", "__array__")


@dataclass(frozen=True)
class Moment:
    """What there was when a backward began, what it passed on, what a step left, or the end."""

    sort: Sort
    values: Values
    at: int = 0
    """How many lines had run."""
    nodes: int = 0
    """How large the graph is that a backward begins with."""
    own: frozenset[str] = frozenset()
    """The variables themselves: what none reads any more may be anything."""


@dataclass
class Play:
    """One run: its moments, and what it lost on its way."""

    moments: list[Moment] = field(default_factory=list)
    history: dict[str, list[Array]] = field(default_factory=dict)
    """The values that each name had, one after the other, when they were read before the first backward."""
    reads: Reads = field(default_factory=Reads)
    error: tuple[str, tuple[int, ...]] | None = None
    failed: int = 0
    """How many moments there were when the first backward failed."""
    lines: set[int] = field(default_factory=set)
    leaves: set[str] = field(default_factory=set)
    stale: set[str] = field(default_factory=set)
    """Leaves that a step moved along a gradient that another had used."""
    erased: set[str] = field(default_factory=set)
    """Leaves whose gradient was cleared before a step had used it."""
    idle: set[str] = field(default_factory=set)
    """Leaves whose gradient a step found cleared, and nothing in its place."""
    cuts: list[tuple[tuple[int, ...], frozenset[str]]] = field(default_factory=list)
    """Where a value lost its graph, and the leaves behind it."""


@dataclass
class Leaf:
    """What is known of the gradient of one leaf."""

    tensor: Any
    value: Array | None
    fresh: bool = False
    used: bool = False
    erased: bool = False
    moved: bool = False
    """Whether it was seen to move since gradients were settled last: another may have moved it back."""


class Player:
    """Listens to one run."""

    now: Player | None = None

    def __init__(self, globals_: dict[str, Any]) -> None:
        self.play = Play()
        self.globals = globals_
        self.leaves: dict[int, Leaf] = {}
        self.names: dict[int, str] = {}
        self.kept: list[Any] = []
        self.clock = 0
        self.begun = False
        self.touching: dict[int, Touched] = {}
        self.of_gradients: frozenset[int] = frozenset()
        self.read = False
        """Whether somebody got at a gradient since the last backward."""
        self.gradients_read = False
        """Whether the line before did."""
        self.steps = False
        """Whether a step runs, which may run backwards of its own."""
        self.cut: list[tuple[tuple[int, ...], list[Any]]] = []
        self.optimizers: list[Any] = []
        self.busy = False
        self.cutting = False
        """Whether it is wanted where values lose their graph."""

    def look(self) -> Held:
        frames: list[types.FrameType] = []
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename == PROGRAM:
                frames.append(frame)
            frame = frame.f_back
        held = around(reversed(frames), self.globals)
        lasting = {number: self.names[number] for number in self.leaves if number in self.names}
        self.names = {**held.names, **lasting}
        return held

    def name(self, tensor: Any) -> str:
        found = self.names.get(id(tensor))
        if found is None:
            for number, optimizer in enumerate(self.optimizers):
                for place, each in enumerate(owned(optimizer)):
                    self.names.setdefault(id(each), f"optimizer{number}.{place}")
            found = self.names.setdefault(id(tensor), f"free{tuple(tensor.shape)}")
        return found

    def leaf(self, tensor: Any) -> Leaf:
        if id(tensor) not in self.leaves:
            self.leaves[id(tensor)] = Leaf(tensor, array(tensor))
        return self.leaves[id(tensor)]

    def settle(self) -> None:
        """Notice what was cleared, and what was moved by hand."""
        self.notice()
        for leaf in self.leaves.values():
            grad = leaf.tensor.grad
            if leaf.moved and (self.read or self.steps):  # what is moved along something else has used none
                self.use(leaf)
            leaf.moved = False
            any_of_it = grad is not None and bool(grad.any())
            leaf.fresh |= any_of_it and not leaf.used  # by hand, where a backward has brought zeros
            if (leaf.fresh or leaf.used) and not any_of_it:
                if leaf.fresh:
                    self.play.erased.add(self.name(leaf.tensor))
                    leaf.erased = True
                leaf.fresh = leaf.used = False

    def notice(self) -> None:
        """Notice what has moved."""
        for leaf in self.leaves.values():
            value = array(leaf.tensor)
            if value is not None and leaf.value is not None and not same(value, leaf.value):
                leaf.moved, leaf.value = True, value

    def use(self, leaf: Leaf) -> None:
        if leaf.used:
            self.play.stale.add(self.name(leaf.tensor))
        if leaf.tensor.grad is not None:
            leaf.used, leaf.fresh = True, False

    def begin(self, roots: list[Any]) -> None:
        held = self.look()
        for place, root in enumerate(roots):
            value = array(root)
            if value is not None and value.size == 1:
                held.values[f"<root {place}>"] = value.reshape(())
        self.begun = True
        self.put("begin", held.values, size(roots), frozenset(held.own))
        self.settle()

    def put(self, sort: Sort, values: Values, nodes: int = 0, own: frozenset[str] = frozenset()) -> None:
        self.play.moments.append(Moment(sort, values, self.clock, nodes, own))

    def look_back(self) -> None:
        """At the end of a function, or of all."""
        held = self.look()
        self.put("end", held.values, own=frozenset(held.own))

    def backward(self, run: Callable[[], Any], roots: Any, inputs: Any) -> Any:
        with self.aside():
            tensors = [roots] if isinstance(roots, torch.Tensor) else list(roots)
            self.begin(tensors)
            targets = [inputs] if isinstance(inputs, torch.Tensor) else inputs
            leaves = list(reached(tensors) if targets is None else targets)
            before = [None if t.grad is None else array(t.grad) for t in leaves]
            for tensor in leaves:
                self.leaf(tensor)
        answer = self.inside(run)
        with self.aside():
            self.passed(leaves, before)
        return answer

    def inside(self, run: Callable[[], Any]) -> Any:
        """Within one backward no other is looked at."""
        was, self.busy = self.busy, True
        try:
            return run()
        except Exception:
            self.play.failed = self.play.failed or len(self.play.moments)
            raise
        finally:
            self.busy = was

    def passed(self, leaves: list[Any], before: list[Array | None]) -> None:
        values: Values = {}
        self.read = False
        for tensor, old in zip(leaves, before, strict=True):
            new = None if tensor.grad is None else array(tensor.grad)
            if new is None:
                continue
            delta = new if old is None or old.shape != new.shape else new - old
            leaf = self.leaf(tensor)
            leaf.fresh |= bool(delta.any())
            if leaf.used and leaf.fresh and same(new, 0 * new):
                self.play.stale.add(self.name(tensor))  # it moves along what adds up to nothing
            values[self.name(tensor)] = delta
        self.play.leaves |= values.keys()
        self.put("gradient", values)

    def grad(self, run: Callable[[], Any], roots: Any, inputs: Any) -> Any:
        with self.aside():
            self.begin([roots] if isinstance(roots, torch.Tensor) else list(roots))
        answer = self.inside(run)
        with self.aside():
            targets = [inputs] if isinstance(inputs, torch.Tensor) else list(inputs)
            pairs = [(self.name(t), array(g)) for t, g in zip(targets, answer, strict=True) if g is not None]
            self.put("gradient", {n: g for n, g in pairs if g is not None})
            self.play.leaves |= {n for n, _ in pairs}
            if not any(each.requires_grad for each in flat(answer)):
                self.severed(list(flat(roots)))
        return answer

    def severed(self, given: list[Any]) -> None:
        """Keep the leaves behind what loses its graph here."""
        self.kept += given
        bases = [each if each._base is None else each._base for each in given if each.is_leaf]
        leaves = [*reached(given), *reached(bases)]
        for leaf in leaves:
            self.leaf(leaf)
        self.cut.append((chain(), leaves))

    def stepping(self, optimizer: Any) -> None:
        with self.aside():
            self.look()
            self.settle()
            for tensor in owned(optimizer):
                leaf = self.leaf(tensor)
                if leaf.erased and not leaf.fresh:
                    self.play.idle.add(self.name(tensor))
                leaf.erased = False
                if tensor.grad is not None:
                    self.use(leaf)
        self.steps = True

    def stepped(self, optimizer: Any) -> None:
        self.steps = False
        with self.aside():
            values: Values = {}
            for tensor in owned(optimizer):
                leaf = self.leaf(tensor)
                leaf.value = array(tensor)
                if leaf.value is not None:
                    values[self.name(tensor)] = leaf.value
            self.play.leaves |= values.keys()
            self.put("step", values)

    def line(self, frame: types.FrameType) -> None:
        """Before the first backward, each value that a name gets is kept."""
        self.play.lines.add(frame.f_lineno)
        self.clock += 1
        if self.gradients_read and not self.busy:
            with self.aside():
                self.notice()
        self.gradients_read = frame.f_lineno in self.of_gradients
        self.read |= frame.f_lineno in self.of_gradients
        touched = self.touching.get(frame.f_lineno)
        if touched is None:
            return
        self.play.reads.note(touched, frame.f_code, self.clock)
        if self.busy or self.begun or not touched.read:
            return
        with self.aside():
            for name in touched.read:
                value = frame.f_locals.get(name)
                if isinstance(value, (torch.Tensor, float)) and (kept := array(value)) is not None:
                    values = self.play.history.setdefault(f"{frame.f_code.co_name}.{name}", [])
                    if not values or not np_equal(values[-1], kept):
                        values.append(kept)

    def left(self) -> None:
        """A function that the script calls is about to take its names along."""
        if self.play.moments and not self.busy:
            with self.aside():
                self.look_back()

    @contextmanager
    def aside(self) -> Iterator[None]:
        was, self.busy = self.busy, True
        try:
            with torch.no_grad():
                yield
        finally:
            self.busy = was

    def ended(self) -> Play:
        with self.aside():
            self.look_back()
            self.settle()
            self.play.cuts = [(lines, frozenset(map(self.name, leaves))) for lines, leaves in self.cut]
        return self.play


def size(roots: list[Any]) -> int:
    """How many nodes are behind some tensors."""
    waiting = [root.grad_fn for root in roots if root.grad_fn is not None]
    seen = set(waiting)
    while waiting:
        for following, _ in waiting.pop().next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append(following)
    return len(seen)


def np_equal(one: Array, other: Array) -> bool:
    """Whether two values are one: a number that was a tensor's is as exact as that."""
    return np.array_equal(one, other, equal_nan=one.dtype.kind in "fc" and other.dtype.kind in "fc")


def chain() -> tuple[int, ...]:
    frame: types.FrameType | None = sys._getframe(1)
    lines = []
    while frame is not None:
        if frame.f_code.co_filename == PROGRAM:
            lines.append(frame.f_lineno)
        frame = frame.f_back
    return tuple(lines)


class Cutter(TorchFunctionMode):
    """Notices where values lose their graph."""

    def __init__(self, player: Player) -> None:
        super().__init__()
        self.player = player

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(function, "__name__", "") == "detach_" and not self.player.busy:
            self.cut(args)  # of which nobody knows afterwards what was behind it
        result = function(*args, **(kwargs or {}))
        if self.player.busy:
            return result
        given = [each for each in flat((args, kwargs)) if each.requires_grad and standing(each)]
        if given and lost(function, result):
            self.cut(given)
        return result

    def cut(self, given: Sequence[Any]) -> None:
        with self.player.aside():
            self.player.severed(list(given))


class Allowing(TorchFunctionMode):
    """Writes unrecorded what torch refuses to write where it records."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        try:
            return function(*args, **(kwargs or {}))
        except RuntimeError as error:
            if not REFUSED.search(str(error)):
                raise
        with torch.no_grad():
            return function(*args, **(kwargs or {}))


def flat(value: Any) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from flat(each)
    elif isinstance(value, dict):
        yield from flat(list(value.values()))


def standing(tensor: torch.Tensor) -> bool:
    """Whether torch still tells what made a value: not where it is a view from a block that records nothing
    whose base was written since."""
    try:
        return tensor.grad_fn is not None or tensor.is_leaf
    except RuntimeError:
        return False


def lost(function: Any, result: Any) -> bool:
    """Whether a call that was given a graph returned values without one."""
    if getattr(function, "__name__", "") in NUMBERS:
        return True
    return any(
        not (each.requires_grad and standing(each)) or (each.is_leaf and each._base is not None)
        for each in flat(result)
    )


def play(
    source: str, argv: list[str], *, cuts: bool = False, spared: Spared = "", allowed: bool = False
) -> Play:
    """One run; `spared`: saved values survive the writes that count, or all of them, and what is made in
    inference mode may be saved; `allowed`: a write that torch refuses to record isn't recorded."""
    globals_: dict[str, Any] = {"__name__": "__main__"}
    player = Player(globals_)
    player.touching, player.of_gradients = touching(source), of_gradients(source)

    def local(frame: types.FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            player.line(frame)
        elif event == "return" and frame.f_back is not None and frame.f_back.f_locals is globals_:
            player.left()
        return local

    def tracer(frame: types.FrameType, event: str, argument: Any) -> Any:
        return local if frame.f_code.co_filename == PROGRAM else None

    random.seed(0)
    np.random.seed(0)
    torch.default_generator.manual_seed(0)
    sys.argv = [PROGRAM, *argv]
    Player.now = player
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
            stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
            code = compile(source, PROGRAM, "exec")
            player.cutting = cuts
            if cuts:
                stack.enter_context(Cutter(player))
            if allowed:
                stack.enter_context(Allowing())
            if spared:
                stack.enter_context(torch.autograd.graph.saved_tensors_hooks(kept_twice, SPARED[spared]))
                stack.enter_context(mock.patch.object(torch, "inference_mode", torch.no_grad))
            sys.settrace(tracer)
            exec(code, globals_)
    except (Exception, SystemExit) as error:  # whatever ends a program is its answer
        player.play.error = f"{type(error).__name__}: {error}", where(error)
    finally:
        sys.settrace(None)
        Player.now = None
        torch.set_grad_enabled(True)
    return player.ended()


def kept_twice(saved: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, int]:
    """A saved value, a copy of it and its version."""
    return saved, saved.clone(), -1 if saved.is_inference() else saved._version


def as_saved(kept: tuple[torch.Tensor, torch.Tensor, int]) -> torch.Tensor:
    """The copy where torch would raise; a write that it doesn't count is met as ever."""
    saved, copy, version = kept
    return saved if version in (-1, saved._version) else copy


def as_it_was(kept: tuple[torch.Tensor, torch.Tensor, int]) -> torch.Tensor:
    """The copy, whether torch would notice the write or not."""
    return kept[1]


SPARED = {"counted": as_saved, "all": as_it_was}


def where(error: BaseException) -> tuple[int, ...]:
    found, trace = [], error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == PROGRAM:
            found.append(trace.tb_lineno)
        trace = trace.tb_next
    return tuple(reversed(found))


def warm() -> None:
    """Pay for torch's slow first times before the forks."""
    torch.set_num_threads(1)
    weight = torch.zeros(1, requires_grad=True)
    torch.autograd.backward(weight.sum())
    torch.optim.Adam([weight]).step()
    for name in ("torch.func", "torch.utils.checkpoint", "torch.utils.data", *parts()):
        importlib.import_module(name)


def parts() -> Iterator[str]:
    """All of gradfix that reads and rewrites, so that forks run one and the same code."""
    for package in ("gradfix.tape", "gradfix.rewriting", "gradfix.defects", "gradfix.codemods"):
        found = importlib.import_module(package)
        yield from (each.name for each in pkgutil.walk_packages(found.__path__, package + "."))


def install() -> None:
    """Stand at the doors of torch in this process, once."""
    plain, plain_grad = torch.autograd.backward, torch.autograd.grad
    kind: Any = torch.optim.Optimizer
    plain_add = kind.add_param_group

    def backward(tensors: Any, *given: Any, **named: Any) -> Any:
        player = Player.now
        if player is None or player.busy:
            return plain(tensors, *given, **named)
        return player.backward(lambda: plain(tensors, *given, **named), tensors, named.get("inputs"))

    def grad(outputs: Any, inputs: Any, *given: Any, **named: Any) -> Any:
        player = Player.now
        if player is None or player.busy:
            return plain_grad(outputs, inputs, *given, **named)
        targets = inputs if isinstance(inputs, torch.Tensor) else list(inputs)
        return player.grad(lambda: plain_grad(outputs, targets, *given, **named), outputs, targets)

    def add(self: Any, group: Any) -> None:
        plain_add(self, group)
        if Player.now is not None and self not in Player.now.optimizers:
            Player.now.optimizers.append(self)

    torch.autograd.backward, torch.autograd.grad, kind.add_param_group = backward, grad, add
    setattr(torch.autograd, "Variable", variable(torch.autograd.Variable))  # noqa: B010
    classes: tuple[Any, Any] = (kind, torch.nn.Module)
    for each in classes:
        each.zero_grad = clearing(each.zero_grad)
    doors = sys.modules["torch.optim.optimizer"]
    doors.register_optimizer_step_pre_hook(before_step)
    doors.register_optimizer_step_post_hook(after_step)


def variable(plain: Any) -> Any:
    """The constructor that gives a value without its graph, and says so to no mode."""

    class Variable(plain):  # type: ignore[misc]
        def __new__(cls, *given: Any, **named: Any) -> Any:
            player = Player.now
            lost = [one for one in flat(given[:1]) if one.requires_grad]
            if player is not None and player.cutting and not player.busy and lost:
                with player.aside():
                    player.severed(lost)
            return plain(*given, **named)

    return Variable


def clearing(plain: Any) -> Any:
    """What clears gradients, and looks at them before."""

    def zero_grad(self: Any, *given: Any, **named: Any) -> Any:
        if Player.now is not None and not Player.now.busy:
            with Player.now.aside():
                Player.now.settle()
        return plain(self, *given, **named)

    return zero_grad


def before_step(optimizer: Any, given: Any, named: Any) -> None:
    if Player.now is not None:
        Player.now.stepping(optimizer)


def after_step(optimizer: Any, given: Any, named: Any) -> None:
    if Player.now is not None:
        Player.now.stepped(optimizer)
