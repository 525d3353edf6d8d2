"""`backward()` is called inside `no_grad` although the graph was built outside.

What breaks: nothing today: grad mode decides what is recorded, not what is walked. The reader has to know
that, and the first forward statement that moves into the block is lost. Off unless selected.

Rewrite: the call moves out of the block, before it or behind it; statements that write in place stay inside.

Left alone: `backward()` under an `enable_grad` of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradfix.defects import Span
from gradfix.defects.records import BackwardUnrecorded
from gradfix.rewriting.dissolve import backward_outside
from gradfix.rule import Decline, Fix, Options, Rule

if TYPE_CHECKING:
    from gradfix.defects import Defect
    from gradfix.tree import Tree


def rewrite(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    """Move the call out of the block."""
    backward = defect.told(BackwardUnrecorded).backward
    if not isinstance(backward, Span):
        return Decline("call backward() outside of the block")
    return backward_outside(tree, defect.culprit, backward)


RULE = Rule(
    code="GF303",
    message="backward() runs inside no_grad: legal, since the graph was built outside, and misleading",
    rewrite=rewrite,
    on_by_default=False,
)
