"""An in-place operation overwrites what backward still needs.

Autograd keeps some inputs and results of the forward pass: relu, sigmoid, exp and softmax their result, pow
and a product of two tensors their inputs. `out += x`, `x[i] = y`, `x.add_(y)`, `F.relu(x, inplace=True)`
and `out=` change such a tensor afterwards, and backward raises "one of the variables needed for gradient
computation has been modified by an inplace operation".

The write becomes an assignment that makes a new tensor under the same name: `out = out + x`, `x =
x.add(y)`. A write into a part of a tensor gets a clone before it: `x = x.clone()`, then `x[i] = y`.

Where another name sees the write too, or a statement saves what it then writes (`h[t + 1] = f(h[t])`), what
the operation saved is cloned instead (`f(h[t].clone())`, or the operation's result), so that all names read
what they read before; where that can't be done the fix is unsafe. A parameter keeps its memory: what
changes it (decay, clamping, a moving average) goes behind the backward as a whole, which is unsafe where
something between meets the changed values. Left alone: writes before the save, and writes into what nothing
saved (conv, linear, batch norm, add and multiplication by a number keep nothing of their result).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradfix.defects.written import Overwritten
from gradfix.rewriting.late import behind_backward
from gradfix.rewriting.outofplace import out_of_place
from gradfix.rule import Decline, Fix, Options, Rule

if TYPE_CHECKING:
    from gradfix.defects import Defect
    from gradfix.tree import Tree


def rewrite(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    """A leaf keeps its name and its memory, anything else gets a new tensor."""
    facts = defect.told(Overwritten)
    return behind_backward(tree, facts) if facts.parameter else out_of_place(defect, tree, options)


RULE = Rule(
    code="GF101",
    message="`{culprit}` overwrites what {saver} saved",
    rewrite=rewrite,
    sometimes_unsafe=True,
)
