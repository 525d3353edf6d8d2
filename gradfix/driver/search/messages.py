"""What torch's errors say of sizes: what it got and what it expected, read as constraints."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

Want = Literal[
    "size", "shape", "ndim", "index", "label", "float", "share", "mask", "high", "divisible", "larger",
    "fewer", "few", "elements", "number",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Constraint:
    """One thing that has to change."""

    want: Want
    got: int = 0
    expected: int = 0
    at: int | None = None
    """Which dimension of what failed, where the message says it."""
    shapes: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    """What was got and what was expected, where whole shapes are said."""
    rest: bool = False
    """Of elements: whether one dimension takes what is left, as the batch mostly does."""


Say = Callable[[Any], Iterator[Constraint]]


def _sizes(at: int | None = None, got: str = "got", expected: str = "expected") -> Say:
    def say(found: Any) -> Iterator[Constraint]:
        said = found.groupdict().get("at")
        yield Constraint("size", int(found[got]), int(found[expected]), int(said) if said else at)

    return say


def _ndim(found: Any) -> Iterator[Constraint]:
    got = found.groupdict().get("got")
    for name in ("expected", "other"):
        if found.groupdict().get(name):
            yield Constraint("ndim", int(got or 0), int(found[name]))


def _of_size(found: Any) -> Iterator[Constraint]:
    """`but got input of size: [2, 5]`."""
    got = found["shape"].count(",") + 1 if found["shape"] else 0
    for name in ("other", "expected"):
        if found[name]:
            yield Constraint("ndim", got, int(found[name]))


def _want(want: Want, group: str = "") -> Say:
    def say(found: Any) -> Iterator[Constraint]:
        yield Constraint(want, expected=int(found[group]) if group else 0)

    return say


def _elements(found: Any) -> Iterator[Constraint]:
    sizes = [int(one) for one in re.findall(r"-?\d+", found["shape"])]
    product = 1
    for one in sizes:
        product *= one if one > 0 else 1
    yield Constraint("elements", int(found["got"]), product, rest=-1 in sizes)


def _shape(found: Any) -> Iterator[Constraint]:
    got, expected = (
        tuple(int(one) for one in re.findall(r"\d+", found[name])) for name in ("got", "expected")
    )
    yield Constraint("shape", shapes=(got, expected))


def _normalized(found: Any) -> Iterator[Constraint]:
    wanted = [int(one) for one in re.findall(r"\d+", found["expected"])]
    got = [int(one) for one in re.findall(r"\d+", found["got"])]
    for at, size in enumerate(reversed(wanted), 1):
        if at <= len(got) and got[-at] != size:
            yield Constraint("size", got[-at], size, -at)


def _over(found: Any) -> Iterator[Constraint]:
    """An axis that it doesn't have."""
    yield Constraint("ndim", int(found["got"]), max(int(found["over"]), int(found["got"]) + 1))


def _same(found: Any) -> Iterator[Constraint]:
    """Two of them have to be alike: the smaller one grows, or the larger one shrinks."""
    small, large = sorted((int(found["got"]), int(found["expected"])))
    yield Constraint("ndim", small, large)
    yield Constraint("ndim", large, small)


def _more(found: Any) -> Iterator[Constraint]:
    """One dimension more."""
    yield Constraint("ndim", int(found["got"]), int(found["got"]) + 1)


GOT, EXPECTED, AT = r"(?P<got>\d+)", r"(?P<expected>\d+)", r"(?P<at>\d+)"


def _lists(found: Any) -> Iterator[Constraint]:
    """Two lists of sizes, as far as they differ."""
    wanted, got = ([int(one) for one in re.findall(r"\d+", found[name])] for name in ("expected", "got"))
    for one, other in zip(got, wanted, strict=False):
        if one != other:
            yield Constraint("size", one, other)


SHAPES: tuple[tuple[str, Say], ...] = (
    (
        r"target size \(torch.Size\(\[(?P<got>[\d, ]*)\]\)\) (?:that is different to|must be the same as)"
        r" (?:the )?input size \(torch.Size\(\[(?P<expected>[\d, ]*)\]",
        _shape,
    ),
    (r"[Ee]xpected hidden\S* size \((?P<expected>[\d, ]+)\), got [\[(](?P<got>[\d, ]+)", _shape),
)
"""What says a whole shape."""
SIZES: tuple[tuple[str, Say], ...] = (
    (rf"shapes cannot be multiplied \(\d+x{GOT} and {EXPECTED}x\d+\)", _sizes(-1)),
    (rf"expected input\[[^]]*\] to have {EXPECTED} channels, but got {GOT}", _sizes(1)),
    (rf"running_mean should contain {GOT} elements not {EXPECTED}", _sizes(1)),
    (
        r"Given normalized_shape=\[(?P<expected>[\d, ]+)\].*got input of size\s?\[(?P<got>[\d, ]+)\]",
        _normalized,
    ),
    (rf"must be equal to input_size. Expected {EXPECTED}, got {GOT}", _sizes(-1)),
    (rf"inconsistent input_size: got {GOT},? expected {EXPECTED}", _sizes(-1)),
    (rf"expecting embedding dimension of {EXPECTED}, but got {GOT}", _sizes(-1)),
    (
        rf"tensor a \({GOT}\) must match the size of tensor b \({EXPECTED}\) at non-singleton dimension {AT}",
        _sizes(),
    ),
    (rf"Expected size {EXPECTED} but got size {GOT}", _sizes()),
    (rf"Expected input batch_size \({EXPECTED}\) to match target batch_size \({GOT}\)", _sizes(0)),
    (
        rf"has size {GOT} for operand \d+ which does not broadcast with previously seen size {EXPECTED}",
        _sizes(),
    ),
    (r"[Ee]xpected size for.*to be: \[(?P<expected>[\d, ]+)\] but got: \[(?P<got>[\d, ]+)\]", _lists),
    (rf"expected \w+ to have {EXPECTED} (?:elements|channels)[^\d]*got {GOT}", _sizes()),
)
"""What says two sizes that should be one."""
DIMENSIONS: tuple[tuple[str, Say], ...] = (
    (
        r"[Ee]xpected (?P<expected>\d)-?D \(unbatched\) or (?P<other>\d)-?D \(batched\)"
        r".*got input of size: \[(?P<shape>[\d, ]*)\]",
        _of_size,
    ),
    (r"[Ee]xpected.*?(?P<expected>\d)-?D or (?P<other>\d)-?D .*?got (?P<got>\d)-?D", _ndim),
    (r"[Ee]xpected (?P<expected>\d)-?D .*?got (?P<got>\d)-?D", _ndim),
    (r"(?:must|should) have (?P<expected>\d) dimensions.*?got (?P<got>\d)", _ndim),
    (r"must be (?P<expected>\d)-?D.*?got (?P<got>\d)-?D", _ndim),
    (rf"values to unpack \(expected {EXPECTED}(?:, got {GOT})?\)", _ndim),
    (rf"does not match.*input.dim\(\) = {GOT}.*= {EXPECTED}", _ndim),
    (rf"expected to be in range of \[-{GOT}, \d+\], but got -?(?P<over>\d+)", _over),
    (rf"number of subscripts in the equation \({EXPECTED}\) does not match.*dimensions \({GOT}\)", _ndim),
    (rf"should also be {EXPECTED}-D but got \({GOT}-D", _ndim),
    (rf"must have same number of dimensions: got {GOT} and {EXPECTED}", _same),
    (rf"too many indices for tensor of dimension {GOT}", _more),
    (r"batch[12] must be a (?P<expected>3)D tensor", _ndim),
)
"""What says how many dimensions there should be."""
KINDS: tuple[tuple[str, Say], ...] = (
    (
        r"scalar types?:? (?:Long|Int)|indices must be|expected (?:scalar type|dtype) (?:Long|Int)"
        r"|expected.*index.*int64|only integer tensors|should be (?:Long|int64)|dtype int64 for index"
        r"|expected.*Long",
        _want("index"),
    ),
    (
        r"index (?P<index>\d+) is out of bounds for (?:dimension|axis) \d+ with size (?P<size>\d+)",
        _want("high", "size"),
    ),
    (r"index out of range|out of bounds|must be smaller than num_classes", _want("high")),
    (r"between 0 and 1", _want("share")),
    (r"selected index k out of range", _want("few")),
    (r"doesn't match the broadcast shape", _want("fewer")),
    (
        r"Boolean value of Tensor with more than one value"
        r"|only one element tensors can be converted|only integer tensors of a single element"
        r"|'Tensor' object cannot be interpreted as an integer"
        r"|argument '\w+' (?:\(position \d+\) )?must be (?:float|int|bool|Number|tuple of \w+), not Tensor"
        r"|can't convert .*Tensor.* to|can't multiply sequence by non-int of type 'Tensor'",
        _want("number"),
    ),
    (r"0D or 1D target tensor expected|multi-target not supported", _want("label")),
    (
        r"could not infer output dtype|must be either floating|floating point"
        r"|not implemented for 'Long'|expected.*Float",
        _want("float"),
    ),
    (r"only supports boolean|dtype bool|must be bool|expected.*[Bb]ool", _want("mask")),
)
"""What says which numbers there should be."""
FITS: tuple[tuple[str, Say], ...] = (
    (rf"shape '\[(?P<shape>[-\d, ]+)\]' is invalid for input of size {GOT}", _elements),
    (
        r"divisible|divisor|must divide|evenly|multiple of|unflatten: Provided sizes|modulo",
        _want("divisible"),
    ),
    (
        r"[Kk]ernel size can't be greater|[Oo]utput size is too small|non-positive|non-empty"
        r"|Padding size should be less|spatial|Expected more than 1 value per channel"
        r"|should be at least|too small",
        _want("larger"),
    ),
)
"""What says that sizes don't go together."""
PATTERNS = (*SHAPES, *SIZES, *DIMENSIONS, *KINDS, *FITS)


def constraints(message: str) -> list[Constraint]:
    """What a message asks for."""
    found: list[Constraint] = []
    for pattern, say in PATTERNS:
        match = re.search(pattern, message, re.DOTALL)
        if match is not None:
            found += say(match)
    return list(dict.fromkeys(found))
