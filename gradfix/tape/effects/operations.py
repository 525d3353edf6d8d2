"""What is known of operations beside what is recorded: one line for each, and the sets that follow from them.

A line of `operations.txt` speaks of an operation under its name out of place, as `torch` or a method has it:
`add` is `torch.add`, `x.add`, `x.add_` and `x + y`, `linalg.norm` is `torch.linalg.norm`. `layers.txt` speaks
of the classes of `torch.nn`. A word is a trait, `key=value` says which of several; each is explained below.

>>> sorted(having("gathers")), told("shape")["matmul"], sorted(where("drops", "eval"))[0]
(['add', 'cat', 'concat', 'concatenate', 'stack', 'sum'], 'product', 'alpha_dropout')
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Literal, TypeAlias, TypeVar

T = TypeVar("T")
Trait: TypeAlias = Literal[
    "additive",  # its result is a sum of its arguments, or holds each of them
    "again",  # what is written in place is another value each time that it is done
    "again-by",  # the same, where the factor is neither 0 nor 1
    "alarms",  # tells numbers that nothing can be learnt from: none, or too large
    "array",  # arrays of numpy have the method too
    "attribute",  # read without a call
    "averages",  # one output is a mean, which keeps nothing
    "blank",  # makes numbers that nobody knows beforehand, or only zeros
    "converts",  # leaves torch for plain values
    "copies",  # its result is its argument: as a copy, a view, on another device or of another dtype
    "detaches",  # the same tensor outside of every graph
    "draws",  # draws random numbers
    "flat",  # its derivative is zero everywhere
    "folds",  # makes a batch of matrices one, in a copy where they don't lie in order
    "from-data",  # makes a tensor of plain values or of another tensor, outside of its graph
    "gathers",  # its result grows where it is done again
    "layered",  # its second operand is a weight, which what goes in is multiplied by
    "holds-it",  # backward holds the very tensor that it is given, neither a view of it nor a result
    "kept",  # done to a gradient that is wanted as it is, and not only measured
    "may-copy",  # a view where one has these sizes, elsewhere a copy
    "moves",  # the tensor elsewhere or of another dtype; itself where it is that already
    "no-twin",  # in place it is not the same operation
    "normalises",  # works on, and keeps, a contiguous copy
    "of-a-list",  # makes a tensor of a list of numbers
    "of-modules",  # modules have the method too, and give back themselves
    "overwrites",  # in place it keeps nothing of what was there
    "permutes",  # reorders the dimensions of what may have more than two
    "rebuilds",  # makes a tensor of what has left the graph
    "scales",  # additive, where the other factor is a number
    "selects",  # gives indices that choose
    "stays",  # done to a gradient, it leaves something of it
    "takes-away",  # additive, with a minus for one of them at least
    "takes-requires-grad",  # takes the keyword
    "weighs",  # one side of it is as often a constant as not: a target, a weight, an advantage
    "wraps",  # makes a tensor of a number first
    "cuts-up",  # its results are pieces of one dimension
    "takes-repeated",  # in place it writes to what shows one place several times, which others refuse
    "refuses-out",  # raises where `out=` is given and what goes in or out requires grad
    "repeating",  # shows one place of memory as several elements
    "may-repeat",  # the same for some of its arguments
    "underived",  # says that its result requires grad, and its backward raises
]
Key: TypeAlias = Literal[
    "shape",  # the rule for the shape of its result
    "stride",  # the rule for the strides of the view that it is
    "memory",  # how new memory lies: row-major (if small, by the weight), as operands agree, or otherwise
    "images",  # how many dimensions an image has that it makes, with its channels first or last in memory
    "gives",  # what a result without a gradient is: a truth, an index, or of the dtype of what went in
    "casts",  # the class of the dtype that it casts to
    "makes",  # a tensor of sizes, like another, of a dtype by its name, or otherwise
    "dtype",  # the class of the dtype of what it makes
    "literals",  # where the numbers begin among its arguments that it makes a tensor of
    "surrogate",  # the family of what could stand in for it where a gradient is wanted
    "drops",  # the mode that it is in unless told
    "at-least",  # how many dimensions its result has at the least
    "numpy",  # its names in numpy and math
    "numpy-takes",  # how many arguments it takes by position there; one, where nothing is said
    "array-names",  # what the method of an array takes by name, as torch does
]
LayerTrait: TypeAlias = Literal["drops", "folds", "normalises"]
LayerKey: TypeAlias = Literal[
    "op",  # the function that it calls, where its name in snake case isn't that
    "shape",  # the rule for the shape of its result
    "transposes",  # the flag by which the first result lies in memory with two dimensions exchanged
    "state",  # one tensor that goes from call to call, or a pair
]

DUNDERS: Mapping[str, str] = {
    "__abs__": "abs",
    "__add__": "add",
    "__and__": "bitwise_and",
    "__eq__": "eq",
    "__floordiv__": "floor_divide",
    "__ge__": "ge",
    "__gt__": "gt",
    "__iadd__": "add_",
    "__iand__": "bitwise_and_",
    "__ifloordiv__": "floor_divide_",
    "__ilshift__": "bitwise_left_shift_",
    "__imatmul__": "matmul",
    "__imod__": "remainder_",
    "__imul__": "mul_",
    "__invert__": "bitwise_not",
    "__ior__": "bitwise_or_",
    "__ipow__": "pow_",
    "__irshift__": "bitwise_right_shift_",
    "__isub__": "sub_",
    "__itruediv__": "div_",
    "__ixor__": "bitwise_xor_",
    "__le__": "le",
    "__lshift__": "bitwise_left_shift",
    "__lt__": "lt",
    "__matmul__": "matmul",
    "__mod__": "remainder",
    "__mul__": "mul",
    "__ne__": "ne",
    "__neg__": "neg",
    "__or__": "bitwise_or",
    "__pos__": "positive",
    "__pow__": "pow",
    "__radd__": "add",
    "__rmul__": "mul",
    "__rshift__": "bitwise_right_shift",
    "__sub__": "sub",
    "__truediv__": "div",
    "__xor__": "bitwise_xor",
}
"""Operators that are exactly a method. The others (`__getitem__`, `__rsub__`) have rows of their own."""


class Table:
    """The lines of a file, by trait and by key."""

    def __init__(self, file: str) -> None:
        self.names: list[str] = []
        self.traits: dict[str, frozenset[str]] = {}
        self.values: dict[str, Mapping[str, str]] = {}
        traits: dict[str, list[str]] = {}
        values: dict[str, dict[str, str]] = {}
        for line in Path(__file__).with_name(file).read_text("utf-8").splitlines():
            name, *words = line.split()
            if name == "#":
                continue
            self.names.append(name)
            for word in words:
                key, said, value = word.partition("=")
                if said:
                    values.setdefault(key, {})[name] = value
                else:
                    traits.setdefault(word, []).append(name)
        self.traits.update((trait, frozenset(names)) for trait, names in traits.items())
        self.values.update((key, MappingProxyType(by_name)) for key, by_name in values.items())

    def where(self, key: str, values: Iterable[str]) -> frozenset[str]:
        """The names of which a key has one of some values."""
        wanted = set(values)
        return frozenset(name for name, value in self.values[key].items() if value in wanted)


OPERATIONS = Table("operations.txt")
LAYERS = Table("layers.txt")


def having(trait: Trait) -> frozenset[str]:
    """The operations with a trait."""
    return OPERATIONS.traits[trait]


def told(key: Key) -> Mapping[str, str]:
    """What is said under a key, by operation."""
    return OPERATIONS.values[key]


def where(key: Key, *values: str) -> frozenset[str]:
    """The operations of which a key has one of these values."""
    return OPERATIONS.where(key, values)


def ruled(key: Key, rules: Mapping[str, T]) -> Mapping[str, T]:
    """For each operation that one of these rules is for, that rule."""
    return {name: rules[value] for name, value in told(key).items() if value in rules}


def layers_having(trait: LayerTrait) -> frozenset[str]:
    """The layers with a trait."""
    return LAYERS.traits[trait]


def layers_told(key: LayerKey) -> Mapping[str, str]:
    """What is said under a key, by layer."""
    return LAYERS.values[key]


@cache
def in_place(names: frozenset[str]) -> frozenset[str]:
    """The same operations, done in place."""
    return frozenset(f"{name}_" for name in names)


def also_in_place(names: frozenset[str]) -> frozenset[str]:
    """Operations under their names, and under those that they have in place."""
    return names | in_place(names)


def in_all_forms(names: frozenset[str]) -> frozenset[str]:
    """The same operations as functions, methods and operators, in place too."""
    operators = {dunder for dunder, name in DUNDERS.items() if name.rstrip("_") in names}
    return also_in_place(names) | operators | {f"__{name}__" for name in names}


@cache
def name_of_layer(kind: str) -> str:
    """How a layer's operation is called in a sentence."""
    named = layers_told("op").get(kind)
    return named or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kind).lower()
