"""Clones a tensor for which a write has no twin: before the write, or behind the operation that saved it."""

from __future__ import annotations

import libcst as cst

from gradfix.defects import Defect, Span
from gradfix.defects.written import Overwritten, RefusedWrite
from gradfix.rewriting.calls import keyword, last_name
from gradfix.rewriting.holders import can_hold, cloned, free_name, same
from gradfix.rewriting.names import binds, walk
from gradfix.rewriting.statements import Anchor, Draft, anchor, method_call, siblings
from gradfix.rule import Decline, Edit, Fix
from gradfix.tape.effects import table
from gradfix.tree import Tree

ABOUT = frozenset({"shape", "size", "dim", "ndim", "numel", "device", "dtype", "is_cuda", "requires_grad"})
"""What a tensor is asked for that isn't its values."""
CARRIED = Decline(
    "what is written here takes its graph into the next turn: write it under no_grad, or a detached value, "
    "and clone what was saved of it"
)
GIVEN_UP = "what is kept for the next turn is cut off from what it is made of"
Writing = cst.AugAssign | cst.Assign | cst.Call


def clone_saved(defect: Defect, tree: Tree) -> Fix | None:
    """`h = relu(z).clone()`: what relu kept is then its own, and all names of `h` see the write as before."""
    facts = defect.facts
    if not isinstance(facts, Overwritten) or facts.save is None:
        return None
    node = tree.at(facts.save, cst.Call, cst.BinaryOperation)
    if not isinstance(node, cst.BaseExpression) or not _keeps_only_its_result(facts.saver):
        return None
    if isinstance(tree.parent(node), cst.Expr) or (isinstance(node, cst.Call) and _in_place(node)):
        return None
    new = cloned(node)
    return Fix((Edit(node, new),), " ".join(tree.code(new).split()))


def clone_read(defect: Defect, tree: Tree, holder: str) -> Fix | None:
    """`cell(states[t].clone())`: what the operation keeps is then its own, whoever writes to the tensor."""
    facts = defect.facts
    if not isinstance(facts, Overwritten) or facts.save is None or not facts.saver:
        return None
    if _keeps_only_its_result(facts.saver):
        return None
    node = tree.at(facts.save, cst.Call, cst.BinaryOperation)
    if node is None or not holder or (isinstance(node, cst.Call) and _in_place(node)):
        return None
    read = [one for one in walk(node) if isinstance(one, cst.BaseExpression) and _reads(tree, one, holder)]
    outer = [one for one in read if not any(above in read for above in tree.ancestors(one))]
    edits = tuple(Edit(one, cloned(one)) for one in outer)
    return Fix(edits, " ".join(tree.code(cloned(outer[0])).split())) if outer else None


def _reads(tree: Tree, node: cst.BaseExpression, holder: str) -> bool:
    """Whether an expression is what holds the tensor or an entry of it, and is asked for its values."""
    part = isinstance(node, cst.Subscript) and same(tree.code(node.value), holder)
    if not part and not same(tree.code(node), holder):
        return False
    above = tree.parent(node)
    return not (isinstance(above, cst.Attribute) and above.attr.value in ABOUT)


def _keeps_only_its_result(saver: str) -> bool:
    module = table.module(saver)
    overloads = (*table.method(saver), *table.function(saver), *table.functional(saver))
    kept = {what for each in (*overloads, *([module.train] if module else [])) for what, _ in each.saves}
    return bool(kept) and all(what.startswith("result") for what in kept)


def _in_place(call: cst.Call) -> bool:
    """Whether the operation itself writes: what it keeps is then not its own."""
    return last_name(call.func).endswith("_") or any(keyword(call, name) for name in ("inplace", "out"))


def clone_written(
    defect: Defect, tree: Tree, node: Writing, holder: cst.BaseExpression | None
) -> Fix | Decline:
    """`x = x.clone()` before `x[i] = y`, as early as the save allows."""
    if holder is None or not can_hold(tree, node, holder):
        return Decline("what is written has no name here that could hold a clone of it")
    if tree.small_statement(node) is None:
        return Decline("write on a line of its own, and clone the tensor before it")
    save = _save(defect)
    clone = cloned(holder)
    says = f"{tree.code(holder)} = {tree.code(clone)}"
    if save is not None and _within(save, tree.span(tree.small_statement(node) or node)):
        return clone_read(defect, tree, tree.code(holder)) or _with_value_first(tree, node, says)
    draft = Draft(tree)
    spot = _earliest(defect, tree, anchor(tree, node), holder)
    alias = _alias_before(tree, spot, holder)
    if alias is None:
        draft.before(spot, says)
        return Fix(draft.edits(), says)
    new = cloned(alias.value)
    return Fix((Edit(alias.value, new),), f"{tree.code(holder)} = {tree.code(new)}")


def clone_outside(defect: Defect, tree: Tree, node: Writing, holder: str) -> Fix | None:
    """`x = x.clone()` before the block that keeps the write from being recorded: the clone is recorded."""
    save = _save(defect)
    blocks = [above for above in tree.ancestors(node) if isinstance(above, cst.With)]
    if not blocks or save is None or not holder.isidentifier() or len(blocks[-1].items) > 1:
        return None
    block = blocks[-1]
    if save.end_line >= tree.span(block).line or tree.function(block) is not tree.function(node):
        return None
    rebound = holder in binds(block) and not isinstance(node, cst.AugAssign)
    if rebound or (saver := tree.at(save)) is None:
        return None
    if tree.function(saver) is not tree.function(block):
        return None
    draft, says = Draft(tree), f"{holder} = {holder}.clone()"
    draft.before(block, says)
    return Fix(draft.edits(), says)


def _save(defect: Defect) -> Span | None:
    if isinstance(defect.facts, Overwritten) and defect.facts.save is not None:
        return defect.facts.save
    if isinstance(defect.facts, RefusedWrite):
        return None  # nothing was saved
    return defect.evidence[0].span if defect.evidence else None


def _within(inner: Span, outer: Span) -> bool:
    begins = (outer.line, outer.column) <= (inner.line, inner.column)
    return begins and (inner.end_line, inner.end_column) <= (outer.end_line, outer.end_column)


def _with_value_first(tree: Tree, node: Writing, clone: str) -> Fix | Decline:
    """The right side itself saves what the statement then writes: the clone has to stand between the two."""
    if isinstance(node, cst.Call):
        return Decline(
            "the arguments of this call need what the call overwrites; work them out on a line before"
        )
    name = free_name(tree, "value", "new_value", "result")
    draft = Draft(tree)
    spot = anchor(tree, node)
    value = node.value if node.value.lpar or "\n" not in tree.code(node.value) else _in_brackets(node.value)
    draft.before(spot, f"{name} = {tree.code(value)}", clone)
    draft.swap(node.value, cst.Name(name))
    return Fix(draft.edits(), clone)


def _in_brackets(node: cst.BaseExpression) -> cst.BaseExpression:
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def _before_the_loops(tree: Tree, spot: Anchor, holder: cst.BaseExpression) -> Anchor:
    """Before the loops that write into what was there before them: one clone is enough."""
    for above in tree.ancestors(spot):
        if not isinstance(above, (cst.For, cst.While)) or not isinstance(holder, cst.Name):
            if isinstance(above, cst.BaseCompoundStatement):
                break
        elif holder.value in binds(above):
            break
        else:
            spot = above
    return spot


def _earliest(defect: Defect, tree: Tree, spot: Anchor, holder: cst.BaseExpression) -> Anchor:
    """Before a row of writes to the same holder, and before the loops that the save stands before."""
    save = _save(defect)
    spot = _first_of_row(tree, spot, holder, save)
    if isinstance(defect.facts, RefusedWrite):
        return _before_the_loops(tree, spot, holder)
    if save is None or not isinstance(holder, cst.Name):
        return spot
    saver = tree.at(save)
    for above in tree.ancestors(spot):
        if isinstance(above, (cst.FunctionDef, cst.ClassDef, cst.Lambda)):
            break
        if isinstance(above, (cst.For, cst.While)):
            earlier = saver is not None and save.end_line < tree.span(above).line
            if not earlier or saver is None or tree.function(saver) is not tree.function(above):
                break
            if holder.value in binds(above):
                break
            spot = above
    return spot


def _first_of_row(tree: Tree, spot: Anchor, holder: cst.BaseExpression, save: Span | None) -> Anchor:
    row = siblings(tree, spot)
    at = next(i for i, each in enumerate(row) if each is spot)
    while at and _writes_into(tree, row[at - 1], holder):
        if save is None or save.end_line >= tree.span(row[at - 1]).line:
            break
        at -= 1
    return row[at]


def _writes_into(tree: Tree, place: Anchor, holder: cst.BaseExpression) -> bool:
    """`x[i] = y` or `x[i] += y`."""
    small = _small(place)
    if isinstance(small, cst.AugAssign):
        target = small.target
    elif isinstance(small, cst.Assign) and len(small.targets) == 1:
        target = small.targets[0].target
    else:
        return False
    return isinstance(target, cst.Subscript) and same(tree.code(target.value), tree.code(holder))


def _alias_before(tree: Tree, spot: Anchor, holder: cst.BaseExpression) -> cst.Assign | None:
    """`out = x`, directly before."""
    row = siblings(tree, spot)
    at = next(i for i, each in enumerate(row) if each is spot)
    small = _small(row[at - 1]) if at else None
    if not isinstance(small, cst.Assign) or len(small.targets) != 1:
        return None
    plain = isinstance(small.value, (cst.Name, cst.Attribute))
    return small if plain and same(tree.code(small.targets[0].target), tree.code(holder)) else None


def _small(place: Anchor) -> cst.CSTNode:
    return place.body[0] if isinstance(place, cst.SimpleStatementLine) else place


def cut_off(tree: Tree, node: Writing, told: Overwritten) -> Fix | Decline:
    """`self.low.copy_(low.detach())`: a clone of what was saved still takes its graph into the next turn."""
    saver = tree.at(told.save, cst.Call, cst.BinaryOperation) if told.save is not None else None
    given = node.args[0].value if isinstance(node, cst.Call) and len(node.args) == 1 else None
    copies = isinstance(node, cst.Call) and last_name(node.func) == "copy_"
    if given is None or not copies or saver is None or not (given is saver or given in tree.ancestors(saver)):
        return CARRIED
    new = method_call(given, "detach")
    return Fix((Edit(given, new),), " ".join(tree.code(new).split()), GIVEN_UP)
