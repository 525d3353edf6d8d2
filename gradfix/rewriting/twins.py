"""What torch offers beside its in-place operations: their twins out of place, and where the flags stand."""

from __future__ import annotations

from collections.abc import Collection

from gradfix.tape.effects import table
from gradfix.tape.effects.operations import having, where


def _pairs(names: Collection[str]) -> frozenset[str]:
    """The names that there are with an underscore too."""
    return frozenset(name for name in names if f"{name}_" in names) - having("no-twin")


METHODS = _pairs(table.names("method")) - where("gives", "truth")
"""The methods `m_` whose `m` gives the same values. Not: draws, copies and fills (`copy_`, `zero_`,
`uniform_`), which have none, and comparisons, whose twin has another dtype."""
FUNCTIONS = _pairs({*table.names("function"), *table.names("functional")})
"""The functions `f_` of torch and torch.nn.functional whose `f` gives the same values."""
FLAG_OF_FUNCTION = {
    name: table.functional(name)[0].args.index("inplace") for name in table.names("functional_inplace")
}
"""Which positional argument of a function in torch.nn.functional is `inplace`."""
FLAG_OF_MODULE = {
    name: made.init.index("inplace")
    for name in table.names("module")
    if (made := table.module(name)) is not None and "inplace" in made.init
}
"""Which positional argument of a module in torch.nn is `inplace`; all of them default to False."""
