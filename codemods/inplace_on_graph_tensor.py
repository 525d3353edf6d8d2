"""An in-place operation writes to a tensor in the graph, although nothing has saved it.

torch allows this: `y = x * 2; y += 1` has the right gradient. It stops working on the day that somebody
puts a relu or an exp before it. For teams that want no in-place operation on tensors that carry a gradient;
off by default.

The write becomes an assignment that makes a new tensor, as in inplace_overwrites_saved;
the fix is unsafe where another name sees the write and would keep the old values.

Left alone: tensors outside any graph (batches, masks, counters), writes under `no_grad`, writes to `.grad`.
"""

from gradfix.rewriting.outofplace import out_of_place
from gradfix.rule import Rule

RULE = Rule(
    code="GF102",
    message="`{culprit}` writes in place to a tensor in the graph",
    sometimes_unsafe=True,
    rewrite=out_of_place,
    on_by_default=False,
)
