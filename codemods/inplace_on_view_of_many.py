"""An in-place operation writes to one of several views that one call returned.

The outputs of chunk, split and unbind, and the rows in `for row in tensor`, are views of one tensor, and
autograd cannot say what a write through one of them does to the others. It raises "This view is the output
of a function that returns multiple views. Such functions do not allow the output views to be modified
inplace".

The write becomes an assignment that makes a new tensor under the same name: `gate = gate * scale`. The
fix is unsafe where something else may see the write and would keep the old values: another name, or the
tensor that the views were taken from.

Where only the whole tensor is read afterwards, a loop over its rows takes them one by one, since autograd can
follow a write to `x[i]`: `for row in (x[i] for i in range(len(x)))`.

Left alone: slices (`x[:, :2]`, `narrow`), which autograd can follow, and tensors that carry no gradient.
"""

from gradfix.rewriting.rows import out_of_place_or_by_index
from gradfix.rule import Rule

RULE = Rule(
    code="GF108",
    message="`{culprit}` writes to one of the views that {maker} returned",
    sometimes_unsafe=True,
    rewrite=out_of_place_or_by_index,
)
