"""A layer, or the whole model, is replaced after the optimizer has taken its parameters.

The optimizer holds the parameters that it was given when it was built. A layer that is put into the model
later has others: they get gradients, and no step ever moves them.

The rewrite builds the optimizer (and what is built on it, such as a scheduler) after the replacement. It is
unsafe, because it changes what trains. Left alone: replacements whose parameters are added with
`add_param_group`.
"""

from __future__ import annotations

import libcst as cst

from gradfix.defects import Defect
from gradfix.defects.records import Replaced
from gradfix.rewriting.statements import Anchor, Draft, anchor, between, names_in, node_of, text_of, together
from gradfix.rule import Decline, Fix, Options, Rule, Safety
from gradfix.tree import Tree

BY_HAND = "build the optimizer after the replacement, or add the new parameters with add_param_group"


def rewrite(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    built = node_of(tree, defect.culprit)
    replaced = node_of(tree, defect.told(Replaced).replacement)
    pair = together(tree, built, replaced) if built is not None and replaced is not None else None
    if built is None or pair is None or pair[0] is not anchor(tree, built):
        return Decline(BY_HAND)
    first, last = pair
    moving = _with_dependents(tree, first, between(tree, first, last))
    if moving is None or last not in between(tree, first, None):
        return Decline(BY_HAND)
    draft = Draft(tree)
    for statement in moving:
        draft.move_after(statement, last)
    says = f"{text_of(tree, first)} after {text_of(tree, last).splitlines()[0]}"
    return Fix(draft.edits(), says, "the new layer begins to train")


def _with_dependents(tree: Tree, built: Anchor, following: list[Anchor]) -> list[Anchor] | None:
    """The optimizer's statement and those that build on it; None if one of them does more than build."""
    moving, names = [built], _bound(built)
    for place in following:
        if not names & names_in(place):
            continue
        if not _bound(place):
            return None
        moving.append(place)
        names |= _bound(place)
    return moving


def _bound(place: Anchor) -> set[str]:
    """The names, attributes' last names too, that a statement assigns the result of a call to."""
    small = place.body[0] if isinstance(place, cst.SimpleStatementLine) else place
    if not isinstance(small, cst.Assign) or not isinstance(small.value, cst.Call):
        return set()
    targets = [target.target for target in small.targets]
    return {
        t.attr.value if isinstance(t, cst.Attribute) else t.value
        for t in targets
        if isinstance(t, (cst.Attribute, cst.Name))
    }


RULE = Rule(
    code="GF211",
    message="`{optimizer}` holds the parameters of a layer that is replaced later",
    rewrite=rewrite,
    safety=Safety.UNSAFE,
)
