"""An in-place operation overwrites what backward still needs.

Autograd keeps some inputs and results of the forward pass: relu, sigmoid, exp and softmax their result, pow
and a product of two tensors their inputs. `out += x`, `x[i] = y`, `x.add_(y)`, `F.relu(x, inplace=True)`
and `out=` change such a tensor afterwards, and backward raises "one of the variables needed for gradient
computation has been modified by an inplace operation".

The write becomes an assignment that makes a new tensor under the same name: `out = out + x`, `x =
x.add(y)`. A write into a part of a tensor gets a clone before it: `x = x.clone()`, then `x[i] = y`.

Where another name sees the write too, the result of the operation that saved it is cloned instead, so that
all names read what they read before; where that can't be done the fix is unsafe. Left alone: writes before
the save, and writes into what nothing saved (conv, linear, batch norm, add and multiplication by a number
keep nothing of their result).
"""

from gradfix.rewriting.outofplace import out_of_place
from gradfix.rule import Rule

RULE = Rule(
    code="GF101",
    message="`{culprit}` overwrites what {saver} saved",
    rewrite=out_of_place,
    sometimes_unsafe=True,
)
