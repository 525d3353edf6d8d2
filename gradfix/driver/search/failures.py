"""From a try that failed to the ones that may go further."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from types import FrameType, TracebackType
from typing import Any

from gradfix.driver.search.attempt import Result
from gradfix.driver.search.conditions import words
from gradfix.driver.search.drafts import Draft, Path, Size, sizes
from gradfix.driver.search.messages import Constraint, constraints
from gradfix.driver.search.sources import text
from gradfix.driver.values import Items, Kind, Made, Number, Tensor, Value

ROUND = 32
SPATIAL = (64, 28, 84, 96, 128, 224, 16, 8, 256)
Changes = dict[Path, Value]


def edits(result: Result, path: str) -> Iterator[Draft]:
    """What to try next, the likeliest first."""
    draft, message = result.draft, str(result.error)
    found = constraints(message)
    for one in [*found, *asserted(result.error, path)]:
        for changes in _changes(one, result):
            yield draft.changed(changes)
    yield from retyped(result, blamed(result.error, path))
    if not any(one.want == "size" for one in found):
        yield from _alike(draft)
    yield from _shapes(draft)
    yield from _numbers(draft)


def _changes(one: Constraint, result: Result) -> Iterator[Changes]:
    draft = result.draft
    if one.want == "label":
        for path, value in involved(result):
            if value.shape:
                yield {path: Tensor(value.shape[:1], "index", 2)}
    elif one.want == "size":
        yield from fitted(draft, one, result)
    elif one.want == "number":
        for path, _ in involved(result):
            yield {path: Number(2)}
    elif one.want == "fewer":
        for path, value in involved(result):
            if len(value.shape) > 1:
                yield {path: with_dimensions(value, len(value.shape) - 1)}
    elif one.want == "shape":
        yield from _whole(draft, *one.shapes)
    elif one.want == "ndim":
        yield from _dimensions(draft, one, result)
    elif one.want == "elements":
        yield from _elements(draft, one)
    elif one.want in ("index", "float", "share", "mask"):
        yield from _kinds(draft, one, result)
    elif one.want == "high":
        yield from _lower(draft, one.expected)
    elif one.want == "divisible":
        yield from _divisible(draft)
    elif one.want == "few":
        for size in sizes(draft):
            if size.at is None and size.size > 2:
                yield size.set(draft, 2)
    elif one.want == "larger":
        yield from _larger(draft)


def involved(result: Result) -> list[tuple[Path, Tensor]]:
    """The tensors of a draft from the last to the first, those before that have the shape of what failed."""
    found = reversed(list(result.draft.leaves()))
    tensors = [(path, one) for path, one in found if isinstance(one, Tensor)]
    return sorted(tensors, key=lambda each: far(each[1].shape, result))


def far(shape: tuple[int, ...], result: Result) -> int:
    """How little a shape has to do with what failed: no two tensors of a draft have the same, mostly."""
    shapes = result.failed[1] if result.failed else []
    if shape in shapes:
        return shapes[::-1].index(shape)
    return len(shapes) + (shape not in result.shapes)


def fitted(draft: Draft, one: Constraint, result: Result) -> Iterator[Changes]:
    """Whatever has the size that was got becomes what was expected; or the other way round."""
    found = list(sizes(draft))
    if one.got and one.at == -1:
        yield from _scaled(draft, one)
    wanted = sorted(
        (each for each in found if each.size == one.got),
        key=lambda each: (min(far(each.shape, result), 2), _off(each, one)),
    )
    for each in wanted:
        if each.at is not None:
            yield each.set(draft, one.expected)
    for each in found:
        if each.at is None and each.size == one.expected:
            yield each.set(draft, one.got)
    for each in wanted:
        if each.at is None:
            yield each.set(draft, one.expected)
    for each in found:
        if each.at is not None and each.size == one.expected:
            yield each.set(draft, one.got)
    yield from _derived(draft, found, one)
    if one.got and one.at == -1:
        yield from _pictures(draft, (one.expected / one.got) ** 0.5)
    for got, expected in ((one.got, one.expected), (one.expected, one.got)):
        both: Changes = {}
        for each in found:
            if each.size == got:
                both.update(each.set(draft.changed(both), expected))
        if both:
            yield both


def _whole(draft: Draft, got: tuple[int, ...], expected: tuple[int, ...]) -> Iterator[Changes]:
    """A tensor of this shape becomes one of that; so do all that are like it."""
    fits = [(path, v) for path, v in draft.leaves() if isinstance(v, Tensor) and v.shape[-len(got) :] == got]
    others = [(path, v) for path, v in draft.leaves() if isinstance(v, Tensor) and path[0] == "call"]
    if fits:
        yield {path: replace(value, shape=expected) for path, value in fits}
    for path, value in [*fits, *reversed(others)]:
        yield {path: replace(value, shape=expected)}
        yield {path: Items((Tensor(expected), Tensor(expected)), "tuple")}


def _off(each: Size, one: Constraint) -> int:
    if each.at is None or one.at is None:
        return 1
    return int(each.at not in (one.at, one.at + each.ndim))


def _derived(draft: Draft, found: list[Size], one: Constraint) -> Iterator[Changes]:
    """A size that comes in several times over, or with another one added."""
    yield from _summed(draft, found, one)
    here = [each for each in found if each.at is None or one.at is None or not _off(each, one)]
    for got, expected in ((one.got, one.expected), (one.expected, one.got)):
        for each in here:
            if got and each.size > 1 and got % each.size == 0 and expected % (got // each.size) == 0:
                new = expected // (got // each.size)
                if new != each.size and each.size != got:
                    yield each.set(draft, new)
        for each in here:
            new = each.size + expected - got
            if each.size < got and 0 < new < 4096:
                yield each.set(draft, new)


def _summed(draft: Draft, found: list[Size], one: Constraint) -> Iterator[Changes]:
    """Two sizes that are put together have to be two that something was built with."""
    tensors = [each for each in found if each.at is not None]
    built = list(dict.fromkeys(each.size for each in found if each.at is None))
    for first, second in itertools.combinations(tensors, 2):
        if first.size + second.size == one.got and first.path != second.path:
            for size in built:
                if one.expected - size in built:
                    changes = first.set(draft, size)
                    yield {**changes, **second.set(draft.changed(changes), one.expected - size)}


def _dimensions(draft: Draft, one: Constraint, result: Result) -> Iterator[Changes]:
    tensors = involved(result)
    fits = [each for each in tensors if not one.got or len(each[1].shape) == one.got]
    for path, value in [*fits, *(each for each in tensors if each not in fits)]:
        if len(value.shape) != one.expected and one.expected <= 6:
            yield {path: with_dimensions(value, one.expected)}


def with_dimensions(value: Tensor, ndim: int) -> Tensor:
    """The same with more or fewer dimensions: batches first, features last, channels before pictures."""
    shape = value.shape
    if value.kind == "index":
        return replace(value, shape=(2, 6, 6, 6, 6)[:ndim])
    last = shape[-1] if shape else 8
    if ndim >= 4:
        channels = shape[1] if len(shape) >= 3 and len(shape) != 3 else 3
        return replace(value, shape=(2, channels, *([8] * (ndim == 5)), ROUND, ROUND)[:ndim])
    if len(shape) >= 4:
        last = shape[1]
    return replace(value, shape={0: (), 1: shape[:1] or (2,), 2: (2, last), 3: (2, 6, last)}[ndim])


def _elements(draft: Draft, one: Constraint) -> Iterator[Changes]:
    """A view of other sizes: pictures, lengths and numbers that make them fit."""
    found = list(sizes(draft))
    if one.rest:
        yield from _flat(draft, one.expected)
    for path, value in draft.leaves():
        if isinstance(value, Tensor) and len(value.shape) == 2 and one.expected > one.got:
            yield {path: with_dimensions(value, 3)}
    for each in found:
        if each.at is None and each.size != ROUND:
            yield each.set(draft, ROUND)
    yield from _pictures(draft)
    for each in found:
        if one.got and each.size * one.expected % one.got == 0:
            yield each.set(draft, each.size * one.expected // one.got)
    for each in found:
        if each.at is not None and each.at == each.ndim - 1 and each.size % 12:
            yield each.set(draft, 48)


def _flat(draft: Draft, wanted: int) -> Iterator[Changes]:
    """Each example of a batch gets so many numbers: in a row, or as a picture of one or three channels."""
    for path, value in draft.leaves():
        if not isinstance(value, Tensor) or value.kind == "index" or len(value.shape) < 2:
            continue
        for channels in (value.shape[1], 1, 3) if len(value.shape) == 4 else ():
            side = round((wanted / channels) ** 0.5)
            if side * side * channels == wanted:
                yield {path: replace(value, shape=(value.shape[0], channels, side, side))}
        yield {path: replace(value, shape=(value.shape[0], wanted))}


def _scaled(draft: Draft, one: Constraint) -> Iterator[Changes]:
    """Pictures that make what is flattened exactly as long as it should be."""
    changes: Changes = {}
    for path, value in draft.leaves():
        if isinstance(value, Tensor) and len(value.shape) == 4 and value.shape[-1] == value.shape[-2]:
            side = round(value.shape[-1] * (one.expected / one.got) ** 0.5)
            if side and side * side * one.got == value.shape[-1] ** 2 * one.expected:
                changes[path] = replace(value, shape=(*value.shape[:-2], side, side))
    if changes:
        yield changes


def _pictures(draft: Draft, ratio: float = 0.0) -> Iterator[Changes]:
    """Pictures of other sizes, those first that are by this much larger or smaller."""
    for size in sorted(SPATIAL, key=lambda size: abs(size / ROUND - ratio)) if ratio else SPATIAL:
        changes: Changes = {}
        for path, value in draft.leaves():
            if isinstance(value, Tensor) and len(value.shape) >= 4 and value.shape[-1] != size:
                changes[path] = replace(value, shape=(*value.shape[:-2], size, size))
        if changes:
            yield changes


def _kinds(draft: Draft, one: Constraint, result: Result) -> Iterator[Changes]:
    """A tensor of another kind: first one that was itself given to what failed."""
    ours = [shape for shape, own in zip(*result.failed[1:], strict=True) if own] if result.failed else []
    for path, value in sorted(involved(result), key=lambda each: each[1].shape not in ours):
        if value.kind != one.want:
            kind: Kind = one.want  # type: ignore[assignment]
            yield {path: replace(value, kind=kind, high=max(value.high, 2))}
            if one.want == "index" and len(value.shape) > 1:
                yield {path: Tensor(value.shape[:-1], "index", 2)}


def _lower(draft: Draft, size: int) -> Iterator[Changes]:
    for path, value in draft.leaves():
        if isinstance(value, Tensor) and value.kind == "index":
            for high in dict.fromkeys((size, 2, 1)):
                if 0 < high < value.high:
                    yield {path: replace(value, high=high)}
    for path, value in draft.leaves():
        if isinstance(value, Tensor) and value.kind == "float" and path[0] == "call":
            yield {path: replace(value, kind="share")}  # as a whole number, nought
    for path, value in draft.leaves():
        if isinstance(value, Number) and value.free and type(value.value) is int and value.value < 64:
            yield {path: Number(value.value * 4 or 1)}


def _divisible(draft: Draft) -> Iterator[Changes]:
    """Round sizes, and few heads."""
    numbers = [each for each in sizes(draft) if each.at is None]
    rounded: Changes = {}
    for each in numbers:
        rounded.update(each.set(draft, 64 if each.size > 6 else each.size))
    yield rounded
    for few in (1, 2, 4, 8):
        for each in numbers:
            if each.size != few:
                yield each.set(draft, few)
    for each in sizes(draft):
        if each.at:
            yield each.set(draft, 64)


def _larger(draft: Draft) -> Iterator[Changes]:
    yield from _pictures(draft)
    for each in sizes(draft):
        if each.at is not None and each.size < 256:
            yield each.set(draft, max(each.size * 4, 8))
    for each in sizes(draft):
        if each.at is None and each.size in (2, 3):
            yield each.set(draft, 1)


def _alike(draft: Draft) -> Iterator[Draft]:
    """All widths the same: what fits in no other way often fits so."""
    for wide in (ROUND, 64):
        changes: Changes = {}
        for each in sizes(draft):
            last = each.at is not None and each.ndim <= 3 and each.at == each.ndim - 1 and each.ndim > 1
            channels = each.at == 1 and each.ndim > 3
            if (each.at is None and each.size >= 16) or last or channels:
                changes.update(each.set(draft.changed(changes), wide))
        yield draft.changed(changes, 2)


def blamed(error: BaseException | None, path: str) -> set[str]:
    """The names in the statement that failed."""
    found = last(error.__traceback__, path) if error is not None else None
    if found is None:
        return set()
    frame, line = found
    statements = text(frame.f_code.co_filename).covering(line, ast.stmt)
    return set(words(statements[-1])) - {"self"} if statements else set()


def retyped(result: Result, names: set[str]) -> Iterator[Draft]:
    """Another kind of value for an argument: first for one of the type, or the name, that is to blame."""
    draft, message = result.draft, str(result.error)
    waiting = [path for path in draft.others if draft.others[path]]
    kinds = (
        TypeError,
        AttributeError,
        KeyError,
        ValueError,
        LookupError,
        AssertionError,
        NotImplementedError,
    )
    first = isinstance(result.error, kinds)
    stage = "build" if result.phase == "build" else "call"
    called = {path: one.name for path, one in draft.arguments()}

    def order(each: Path) -> tuple[bool, bool, bool]:
        return each[0] != stage, called[each] not in names, not named(draft.at(each), message)

    for path in sorted(waiting, key=order):
        if first or named(draft.at(path), message) or path[0] == stage:
            other = draft.other(path)
            if other is not None:
                yield other


def named(value: Value, message: str) -> bool:
    """Whether a message speaks of a value of this type."""
    names = {Tensor: ("Tensor",), Items: ("list", "tuple")}.get(type(value), ())
    if isinstance(value, Number):
        names = (type(value.value).__name__,)
    elif isinstance(value, Made):
        names = (value.callee.rpartition(".")[2],)
    return any(re.search(rf"\b{name}\b", message) for name in names)


def _shapes(draft: Draft) -> Iterator[Draft]:
    """Other numbers of dimensions."""
    for path, value in draft.leaves():
        if isinstance(value, Tensor):
            for ndim in (2, 3, 4, 1):
                if ndim != len(value.shape):
                    yield draft.changed({path: with_dimensions(value, ndim)}, 3)


def _numbers(draft: Draft) -> Iterator[Draft]:
    """Other numbers."""
    for path, value in draft.leaves():
        if isinstance(value, Number) and value.free and type(value.value) is int:
            for other in (1, 2, 4, 64):
                if other != value.value:
                    yield draft.changed({path: Number(other)}, 4)


def asserted(error: BaseException | None, path: str) -> Iterator[Constraint]:
    """What a test that the project makes itself compares: `assert x.shape[1] == self.width`."""
    frame = last(error.__traceback__, path) if error is not None else None
    if error is None or frame is None:
        return
    found, where = frame
    source = text(found.f_code.co_filename)
    for kind in (ast.Assert, ast.If):
        for node in source.covering(where, kind)[-1:]:
            if kind is ast.If and not any(isinstance(one, ast.Raise) for one in node.body):
                continue
            for test in ast.walk(node.test):
                if isinstance(test, ast.Compare) and len(test.ops) == 1:
                    yield from _compared(test, found)


def last(trace: TracebackType | None, path: str) -> tuple[FrameType, int] | None:
    """The innermost frame in the project's own code."""
    found = None
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if name == path or not ("site-packages" in name or "/lib/python" in name or "gradfix" in name):
            found = trace.tb_frame, trace.tb_lineno
        trace = trace.tb_next
    return found


def _compared(test: ast.Compare, frame: FrameType) -> Iterator[Constraint]:
    one, other = (_value(side, frame) for side in (test.left, test.comparators[0]))
    if isinstance(one, int) and isinstance(other, int) and not isinstance(one, bool):
        left = test.left
        if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mod):
            yield Constraint("divisible")
            inner, by = _value(left.left, frame), _value(left.right, frame)
            if isinstance(inner, int) and isinstance(by, int) and by:
                yield Constraint("size", inner, by * max(1, round(inner / by)))
        elif one != other:
            yield Constraint("size", one, other)
        elif isinstance(test.ops[0], ast.NotEq):
            yield Constraint("size", one, one + 1)


def _value(node: ast.expr, frame: FrameType) -> Any:
    """What an expression without calls but `len` and `size` stands for in a frame."""
    calls = [one for one in ast.walk(node) if isinstance(one, ast.Call)]
    if any(ast.unparse(one.func).rpartition(".")[2] not in ("len", "size", "dim") for one in calls):
        return None
    try:
        return eval(compile(ast.Expression(node), "<test>", "eval"), frame.f_globals, frame.f_locals)
    except Exception:
        return None
