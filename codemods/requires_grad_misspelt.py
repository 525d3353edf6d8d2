"""An assignment that was to freeze or unfreeze something sets an attribute that nobody reads.

`param.require_grad = False` is legal Python: it gives the tensor an attribute of that name and freezes
nothing. `module.requires_grad = False` likewise: a module has no such switch, its parameters have.
`param.requires_grad == False` as a statement compares, and assigns nothing. And what `if p.requires_grad:
p.requires_grad = flag` has frozen, it never lets learn again.

The rewrite spells it `requires_grad`, assigns, and calls `requires_grad_(...)` on a module. Where this
freezes something the fix is unsafe, because it changes what trains. Left alone: objects that have an
attribute of that name of their own, and comparisons that hold.
"""

from __future__ import annotations

import libcst as cst

from gradfix.defects import Defect, Span
from gradfix.defects.records import Misspelt
from gradfix.rule import Decline, Edit, Fix, Options, Rule
from gradfix.tree import Tree

THAWS = "what was frozen elsewhere learns again as well"
BY_HAND = "set requires_grad on the parameters"


def rewrite(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    if defect.told(Misspelt).guarded:
        return _unguarded(tree, defect.culprit)
    assign = _assignment(tree, defect.culprit)
    if assign is None or len(assign.targets) != 1:
        return Decline(BY_HAND)
    target = assign.targets[0].target
    if not isinstance(target, cst.Attribute):
        return Decline(BY_HAND)
    new = _on_module(target, assign) if defect.told(Misspelt).on == "module" else _respelt(target, assign)
    thaws = isinstance(assign.value, cst.Name) and assign.value.value == "True"
    says = tree.code(new.with_changes(semicolon=cst.MaybeSentinel.DEFAULT))
    stated = tree.at(defect.culprit, cst.Assign, cst.Comparison)
    old = tree.small_statement(stated) if stated is not None else None
    return (
        Decline(BY_HAND)
        if old is None
        else Fix((Edit(old, new),), says, "" if thaws else "what it freezes has been trained so far")
    )


def _unguarded(tree: Tree, culprit: Span) -> Fix | Decline:
    """What stands under the test, without the test."""
    guard = tree.at(culprit, cst.If)
    line = guard.body.body[0] if guard is not None else None
    if guard is None or not isinstance(line, (cst.SimpleStatementLine, cst.Assign)):
        return Decline(BY_HAND)
    kept = line if isinstance(line, cst.SimpleStatementLine) else cst.SimpleStatementLine([line])
    kept = kept.with_changes(leading_lines=[*guard.leading_lines, *kept.leading_lines])
    return Fix((Edit(guard, kept),), tree.code(kept).strip(), THAWS)


def _assignment(tree: Tree, culprit: Span) -> cst.Assign | None:
    """The assignment that stands there, or that a comparison there was to be."""
    compared = tree.at(culprit, cst.Comparison)
    statement = tree.parent(compared) if compared is not None else None
    if compared is None or not isinstance(statement, cst.Expr):
        return tree.at(culprit, cst.Assign)
    value = compared.comparisons[0].comparator
    target = cst.AssignTarget(compared.left)  # type: ignore[arg-type]
    return cst.Assign([target], value, semicolon=statement.semicolon)


def _respelt(target: cst.Attribute, assign: cst.Assign) -> cst.Assign:
    right = target.with_changes(attr=cst.Name("requires_grad"))
    return assign.with_changes(targets=[assign.targets[0].with_changes(target=right)])


def _on_module(target: cst.Attribute, assign: cst.Assign) -> cst.Expr:
    switch = target.with_changes(attr=cst.Name("requires_grad_"))
    return cst.Expr(cst.Call(switch, [cst.Arg(assign.value)]), semicolon=assign.semicolon)


RULE = Rule(
    code="GF212",
    message="`{attribute}` on a {on} has no effect",
    sometimes_unsafe=True,
    rewrite=rewrite,
)
