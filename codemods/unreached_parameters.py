"""An optimizer holds parameters that no backward ever reaches.

What breaks: `step()` skips parameters whose gradient is None, so the network behind them keeps its initial
weights while the loss of the others goes down. Typical: a generator's loss computed from `D(fake.detach())`,
an actor's from `critic(state, action.detach())`, a code passed to the decoder as `encoder(x).data`.

Rewrite: where a cut keeps the gradient from them, the cut goes. Where that is a sample, `sample()` becomes
`rsample()`, which passes gradients on; that is unsafe, as it draws other numbers, and as who makes an array
of what a function returns then has to detach it. Where all that an optimizer or one of its groups was given
runs under `no_grad`, it moves out; that is unsafe where another backward meets it too. So is taking out one
of two cuts that keep the same parameters from a loss, or one of a factor of what learns. What the loss holds
its prediction against stays cut. Where all of a group was frozen as it was made, by a function that does so
unless told otherwise (`nn.Embedding.from_pretrained(vectors)`), it is told: `freeze=False`. Where nothing was
cut there is no fix: use the parameters in the loss, or take them out of the optimizer. Where an operation
without a gradient chooses the nearest code of a codebook, what is chosen is put behind a straight-through
estimator: `codes[index] + (z - z.detach())`; so is what is one for the best of some scores and zero for the
others. That is unsafe, and done by hand where it isn't known that the two have one shape.

Left alone: frozen parameters, parameters that another loss or another branch reaches, and parameters whose
use gradfix cannot follow.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from gradfix.defects.severed import Unreached
from gradfix.rewriting import shapes as m
from gradfix.rewriting.calls import last_name
from gradfix.rewriting.dissolve import recorded
from gradfix.rewriting.late import unfrozen
from gradfix.rewriting.rejoin import any_cut
from gradfix.rewriting.straight import best_through, chosen_through
from gradfix.rule import Decline, Edit, Fix, Options, Rule

if TYPE_CHECKING:
    from gradfix.defects import Defect
    from gradfix.tree import Tree


CHOOSES = Decline(
    "what is chosen here passes no gradient on: with x for what it is chosen for and y for what is chosen, "
    "go on with y + (x - x.detach())"
)
DRAWN = (
    "an index that is drawn passes no gradient on: use torch.nn.functional.gumbel_softmax(logits, hard=True) "
    "times what it chooses from, or learn from the log probability of what was drawn"
)
TARGET = (
    "the loss holds what it trains against this: where that target is meant, take these parameters out of "
    "the optimizer"
)
EITHER = "what these parameters make is cut off in another place as well, and one of the two may be meant"
OTHERS = "it draws other numbers"
CALLERS = ", and who makes an array of what `{name}` returns has to detach it"
WEIGHS = "what is cut off weighs what learns, and may be meant as a constant"
SHARED = "another backward meets what was cut as well, and then reaches these parameters too"


def rewrite(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    """Take out the cut before the parameters, where there is one."""
    facts = defect.told(Unreached)
    if facts.cut is None:
        return Decline("use these parameters in the loss, or take them out of the optimizer")
    if facts.cut_kind == "frozen":
        return unfrozen(tree, facts.cut)
    if facts.cut_kind in ("sample", "drawn"):
        return _reparametrised(tree, tree.at(facts.cut, cst.Call), facts.cut_kind)
    if facts.cut_kind == "constant":
        hot = best_through(tree, facts, tree.at(facts.cut, cst.Call))
        cut = tree.at(facts.cut, cst.Call)
        drawn = cut is not None and last_name(cut.func) == "multinomial"
        return hot or chosen_through(tree, facts) or (Decline(DRAWN) if drawn else CHOOSES)
    if facts.target:
        return Decline(TARGET)
    if not facts.alone:
        return Decline("another cut stands behind this one: let a gradient through both")
    fix = recorded(tree, facts.cut, facts.forward) if facts.forward else any_cut(tree, facts.cut)
    unsafe = SHARED if facts.shared else EITHER if facts.either else WEIGHS if facts.weighs else ""
    return replace(fix, unsafe=unsafe) if isinstance(fix, Fix) and unsafe else fix


def _reparametrised(tree: Tree, call: cst.Call | None, kind: str) -> Fix | Decline:
    """`rsample()` draws from the same distribution, by other numbers."""
    if kind == "drawn" or call is None or not isinstance(call.func, cst.Attribute):
        return Decline("a sample passes no gradient on: learn from its log_prob, or relax the distribution")
    new = call.with_changes(func=call.func.with_changes(attr=cst.Name("rsample")))
    function, unsafe = tree.function(call), OTHERS
    returns = m.findall(function, m.Return()) if function is not None else ()
    if function is not None and any(isinstance(one, cst.Return) and one.value for one in returns):
        unsafe += CALLERS.format(name=function.name.value)
    return Fix((Edit(call, new),), " ".join(tree.code(new).split()), unsafe)


RULE = Rule(
    code="GF208",
    message="`{optimizer}` holds parameters that no backward() reaches: they are never trained",
    sometimes_unsafe=True,
    rewrite=rewrite,
)
