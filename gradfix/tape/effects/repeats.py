"""Whether a write that is done again changes its target again: a mask that is put on twice does not."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradfix.tape.domain.paths import implies
from gradfix.tape.effects.operations import having, in_place

if TYPE_CHECKING:
    from gradfix.tape.domain.graph import Saved, Write
    from gradfix.tape.domain.values import Place

ADDING = in_place(having("again"))
SCALING = in_place(having("again-by"))


def adds_up(place: Place) -> bool:
    """Whether a write changes its target again each time that it is done."""
    if isinstance(place, ast.AugAssign):
        return isinstance(place.op, (ast.Add, ast.Sub)) or _scales(place.value)
    if isinstance(place, ast.Assign) and isinstance(value := place.value, ast.BinOp):
        own = ast.unparse(place.targets[0])
        return ast.unparse(value.left) == own and (
            isinstance(value.op, (ast.Add, ast.Sub)) or _scales(value.right)
        )
    if not isinstance(place, ast.Call) or not isinstance(place.func, ast.Attribute):
        return False
    scaled = place.func.attr in SCALING and len(place.args) == 1 and _scales(place.args[0])
    return place.func.attr in ADDING or scaled


def _scales(by: ast.expr) -> bool:
    """Whether a product with it is another one each time: a mask of zeros and ones it is not."""
    return isinstance(by, ast.Constant) and by.value not in (0, 1)


def put_again(write: Write, saved: Saved) -> bool:
    """Whether a write was done before the save as well, and nothing was added since: a mask or a bound that
    is put on again may change nothing."""
    if adds_up(write.place) or all(one.place is not write.place for one in saved.writes[: saved.seen]):
        return False
    since = saved.writes[saved.seen : saved.writes.index(write)]
    return not any(implies(write.path, one.path) and adds_up(one.place) for one in since)
