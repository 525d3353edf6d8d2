"""Rewrites an in-place write so that it makes a new tensor, which the same name then holds.

Three shapes are told apart by what holds the tensor (the defect's fact `target`): the write names the
holder itself (`x += y`, `x.add_(y)`, `F.relu(x, inplace=True)`) and becomes an assignment to it; it goes
through a view of the holder (`x[i] = y`, `x.t().add_(y)`) and the holder is cloned first; or nothing holds
the tensor (`F.relu(fc(x), inplace=True)`) and the in-place flag goes.
"""

from __future__ import annotations

from dataclasses import replace

import libcst as cst

from gradfix.defects import Defect
from gradfix.defects.written import Overwritten, Written
from gradfix.rewriting import binary
from gradfix.rewriting.calls import Write, later_link, written
from gradfix.rewriting.cloning import (
    Writing,
    clone_outside,
    clone_read,
    clone_saved,
    clone_written,
    cut_off,
)
from gradfix.rewriting.holders import can_hold, free_name, held, holder_of, repeatable, same
from gradfix.rewriting.names import read_later, reads, walk
from gradfix.rewriting.statements import Draft, anchor
from gradfix.rule import Decline, Edit, Fix, Options
from gradfix.tree import Tree, children

NOT_FOUND = Decline("this write has no form that gradfix knows how to say out of place")
NO_NAME = Decline("what is written here has no name in this scope; give it one and write it out of place")
ONLY_ALIAS = Decline(
    "only another name reads what is written here; clone the tensor before one of the two uses it"
)
READ_BEFORE = Decline("the tensor is read in this statement before it is written; split the statement")
IN_TUPLE = Decline("a tuple's element can't be replaced; unpack the tuple, and write a name out of place")
FOR_EFFECT = Decline(
    "this function is called for what it writes; return the result instead, or write under no_grad where "
    "no gradient is wanted"
)
UNRECORDED = Decline(
    "clone the tensor where it is recorded, before this block: what is made here has no graph"
)
SEEN = "another name sees this write, and would keep the old values"
RETAINED = "its gradient is read, and the new tensor under its name has another"
CONDITIONAL = (cst.Lambda, cst.IfExp, cst.BooleanOperation, cst.BaseComp, cst.NamedExpr)


def out_of_place(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    """The fix for a write in place, whichever way it is written."""
    node = writing(defect, tree)
    if node is None:
        return NOT_FOUND
    told = defect.told(Written)
    if isinstance(told, Overwritten) and told.carries and not _made_anew(tree, node, told.target):
        return cut_off(tree, node, told)
    saved = None
    if told.aliased and not told.met_again and not later_link(node):
        saved = clone_saved(defect, tree) or clone_read(defect, tree, told.target)
    return saved or heeding_aliases(written_anew(defect, tree, node), defect, tree, node)


def _made_anew(tree: Tree, node: Writing, target: str) -> bool:
    """Whether each call or turn binds what holds the tensor before it writes to it."""
    for above in tree.ancestors(node):
        if isinstance(above, (cst.For, cst.While, cst.FunctionDef)):
            earlier = (one for one in walk(above) if isinstance(one, cst.Assign) and one is not node)
            targets = (one.targets[0].target for one in earlier if tree.span(one) < tree.span(node))
            if any(same(tree.code(one), target) for one in targets):
                return True
        if isinstance(above, cst.FunctionDef):
            break
    return False


def written_anew(defect: Defect, tree: Tree, node: Writing) -> Fix | Decline:
    """The fix where no other name sees the write."""
    if not defect.told(Written).unrecorded:
        return rewritten(defect, tree, node)
    return clone_saved(defect, tree) or clone_outside(defect, tree, node, target_of(defect)) or UNRECORDED


def writing(defect: Defect, tree: Tree) -> Writing | None:
    """The node that writes."""
    node = tree.at(defect.culprit, cst.AugAssign, cst.Assign, cst.Call)
    return node if isinstance(node, (cst.AugAssign, cst.Assign, cst.Call)) else None


def rewritten(defect: Defect, tree: Tree, node: Writing) -> Fix | Decline:
    """The same where a new tensor has a graph."""
    if isinstance(node, cst.AugAssign):
        return _augmented(defect, tree, node)
    return _index_write(defect, tree, node) if isinstance(node, cst.Assign) else _call(defect, tree, node)


def heeding_aliases(answer: Fix | Decline, defect: Defect, tree: Tree, node: cst.CSTNode) -> Fix | Decline:
    """Another name would no longer see the write: unsafe, and pointless where only that name is read."""
    if isinstance(answer, Fix) and defect.told(Written).in_tuple:
        return IN_TUPLE
    target = target_of(defect)
    if isinstance(answer, Fix) and not answer.unsafe and _gradient_read(tree, node, target):
        return replace(answer, unsafe=RETAINED)
    if isinstance(answer, Decline) or not defect.told(Written).aliased:
        return answer
    small = tree.small_statement(node)
    if _for_effect(tree, node, target):
        return FOR_EFFECT
    returned = isinstance(small, cst.Return) and target in reads(small)
    if target.isidentifier() and not returned and not read_later(tree, node, target):
        return ONLY_ALIAS
    return replace(answer, unsafe=SEEN)


def _gradient_read(tree: Tree, node: cst.CSTNode, target: str) -> bool:
    """Whether the gradient of what is written is read: the one of a new tensor under its name is another."""
    scope = tree.function(node) or tree.module
    reads = (part for part in walk(scope) if isinstance(part, cst.Attribute) and part.attr.value == "grad")
    return any(same(tree.code(part.value), target) for part in reads)


def _for_effect(tree: Tree, node: cst.CSTNode, target: str) -> bool:
    """Whether a function writes an argument and gives nothing back."""
    function = tree.function(node)
    if function is None or isinstance(function.body, cst.SimpleStatementSuite):
        return False
    given = {param.name.value for param in (*function.params.params, *function.params.posonly_params)}
    results = (part.value for part in walk(function) if isinstance(part, (cst.Return, cst.Yield)))
    return target in given and all(result is None for result in results)


def target_of(defect: Defect) -> str:
    return defect.told(Written).target


def says(tree: Tree, node: cst.CSTNode) -> str:
    """Source text on one line."""
    return " ".join(tree.code(node).rstrip("; ").split())


def _augmented(defect: Defect, tree: Tree, node: cst.AugAssign) -> Fix | Decline:
    holder = _holder(defect, tree, node.target)
    if holder is not node.target and not _through_call(node.target):
        return clone_written(defect, tree, node, holder)
    if isinstance(node.target, cst.Subscript) and not repeatable(node.target):
        return _with_index_first(defect, tree, node, node.target)
    if can_hold(tree, node, node.target):
        new = assigned(defect, node, node.target)
        return Fix((Edit(node, new),), says(tree, new))
    return NO_NAME


def _holder(defect: Defect, tree: Tree, place: cst.BaseExpression) -> cst.BaseExpression | None:
    """What holds the tensor that is written at a place."""
    target = target_of(defect)
    return held(holder_of(tree, place, target) if target else place)


def _through_call(place: cst.BaseExpression) -> bool:
    """`rows[next(i)]`: an element whose place is worked out by a call."""
    return not repeatable(place) and held(place) is None


def assigned(defect: Defect, node: cst.AugAssign, target: cst.BaseAssignTargetExpression) -> cst.Assign:
    """`x = x + y` from `x += y`."""
    value = binary.operation(node, target, node.value)
    return binary.assignment(node, target, _in_dtype(defect, target, value))


def _in_dtype(defect: Defect, target: cst.BaseExpression, value: cst.BaseExpression) -> cst.BaseExpression:
    """The value, brought back to the dtype that a write in place would have kept."""
    if not defect.told(Written).promotes:
        return value
    owner = binary.bracketed(value) if isinstance(value, cst.BinaryOperation) else value
    dtype = cst.Attribute(target.deep_clone(), cst.Name("dtype"))
    return cst.Call(cst.Attribute(owner, cst.Name("to")), [cst.Arg(dtype)])


def _with_index_first(
    defect: Defect, tree: Tree, node: cst.AugAssign, target: cst.Subscript
) -> Fix | Decline:
    """`rows[next(i)] += y`: the index gets a name, so that it is worked out once."""
    index = _lone_index(target)
    if index is None or not isinstance(target.value, cst.Name):
        return Decline("the place that is written would be worked out twice; give it a name first")
    name = free_name(tree, "index", "position")
    element = cst.SubscriptElement(cst.Index(cst.Name(name)))
    new = assigned(defect, node, target.with_changes(slice=[element]))
    draft = Draft(tree)
    draft.before(anchor(tree, node), f"{name} = {tree.code(index)}")
    draft.swap(node, new)
    return Fix(draft.edits(), says(tree, new))


def _lone_index(target: cst.BaseExpression) -> cst.BaseExpression | None:
    if not isinstance(target, cst.Subscript) or len(target.slice) != 1:
        return None
    index = target.slice[0].slice
    return index.value if isinstance(index, cst.Index) else None


def _index_write(defect: Defect, tree: Tree, node: cst.Assign) -> Fix | Decline:
    targets = [part for each in node.targets for part in _places(each.target)]
    if not targets:
        return NOT_FOUND
    filled = _masked_fill(tree, node) if len(targets) == 1 else None
    return filled or clone_written(defect, tree, node, _holder(defect, tree, targets[0].value))


def _places(target: cst.BaseExpression) -> list[cst.Subscript]:
    if isinstance(target, (cst.Tuple, cst.List)):
        return [place for element in target.elements for place in _places(element.value)]
    return [target] if isinstance(target, cst.Subscript) else []


def _masked_fill(tree: Tree, node: cst.Assign) -> Fix | None:
    """`x[x < 0] = 0` is `x = x.masked_fill(x < 0, 0)`: a comparison with a number has x's own shape."""
    place = node.targets[0].target
    if not isinstance(place, cst.Subscript) or not isinstance(place.value, cst.Name):
        return None
    mask = _lone_index(place)
    if not isinstance(mask, cst.Comparison) or len(mask.comparisons) != 1 or not _number(node.value):
        return None
    sides = (mask.left, mask.comparisons[0].comparator)
    if {_number(side) or same(tree.code(side), place.value.value) for side in sides} != {True}:
        return None
    if all(map(_number, sides)) or not any(map(_number, sides)) or not can_hold(tree, node, place.value):
        return None
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    arguments = [cst.Arg(mask, comma=comma), cst.Arg(node.value)]
    call = cst.Call(cst.Attribute(place.value.deep_clone(), cst.Name("masked_fill")), arguments)
    new = node.with_changes(targets=[node.targets[0].with_changes(target=place.value)], value=call)
    return Fix((Edit(node, new),), says(tree, new))


def _number(node: cst.BaseExpression) -> bool:
    inner = node.expression if isinstance(node, cst.UnaryOperation) else node
    return isinstance(inner, (cst.Integer, cst.Float))


def _call(defect: Defect, tree: Tree, node: cst.Call) -> Fix | Decline:
    target = target_of(defect)
    write = written(tree, node, target)
    if isinstance(write, Decline):
        return write
    holder = _holder(defect, tree, write.tensor) if target else None
    if holder is None:
        return _unheld(tree, write)
    if holder is not write.tensor or write.twin is None:
        return clone_written(defect, tree, node, holder)
    if not can_hold(tree, node, holder):
        return NO_NAME
    return _bound(tree, write, holder, _in_dtype(defect, holder, write.twin))


def _unheld(tree: Tree, write: Write) -> Fix | Decline:
    if write.twin is None or isinstance(tree.parent(write.call), cst.Expr):
        return NO_NAME
    return Fix((Edit(write.call, write.twin),), says(tree, write.twin))


def _bound(tree: Tree, write: Write, holder: cst.BaseExpression, twin: cst.BaseExpression) -> Fix | Decline:
    """The out-of-place call, and the assignment by which later reads of the holder see its result."""
    small = tree.small_statement(write.call)
    new = cst.Assign([cst.AssignTarget(holder.deep_clone())], twin)  # type: ignore[arg-type]
    if isinstance(small, cst.Expr) and small.value is write.call:
        return Fix((Edit(small, new),), says(tree, new))
    if small is not None and not _read_again(tree, small, write.call, holder):
        return Fix((Edit(write.call, twin),), says(tree, twin))
    if not _comes_first(tree, write.call, holder):
        return READ_BEFORE
    draft = Draft(tree)
    draft.before(anchor(tree, write.call), tree.code(new))
    draft.swap(write.call, holder.deep_clone())
    return Fix(draft.edits(), says(tree, new))


def _read_again(
    tree: Tree, small: cst.BaseSmallStatement, call: cst.Call, holder: cst.BaseExpression
) -> bool:
    """Whether the holder is read after the call, before it gets another value."""
    if [tree.code(target) for target in _targets(small)] == [tree.code(holder)]:
        return _also_read(tree, small, call, holder)
    if not isinstance(holder, cst.Name):
        return True
    return _also_read(tree, small, call, holder) or read_later(tree, call, holder.value)


def _targets(small: cst.BaseSmallStatement) -> list[cst.BaseExpression]:
    if isinstance(small, cst.Assign):
        return [each.target for each in small.targets]
    return [small.target] if isinstance(small, cst.AnnAssign) else []


def _also_read(tree: Tree, small: cst.BaseSmallStatement, call: cst.Call, holder: cst.BaseExpression) -> bool:
    """Whether the statement reads the holder outside the call."""
    rest = small.deep_replace(call, cst.Integer("0"))
    assert isinstance(rest, cst.BaseSmallStatement)
    if isinstance(holder, cst.Name):
        return holder.value in reads(rest)
    text = tree.code(holder)
    found = [part for part in walk(rest) if isinstance(part, type(holder)) and tree.code(part) == text]
    return len(found) > [tree.code(target) for target in _targets(rest)].count(text)


def _comes_first(tree: Tree, call: cst.Call, holder: cst.BaseExpression) -> bool:
    """Whether the call runs exactly once, and its statement does not look into the holder before."""
    inner: cst.CSTNode = call
    for above in tree.ancestors(call):
        if isinstance(above, (cst.BaseSmallStatement, cst.If, cst.For)):
            return not isinstance(above, cst.If) or not isinstance(tree.parent(above), cst.If)
        if isinstance(above, (cst.BaseCompoundStatement, *CONDITIONAL)) or _looked_into(above, inner, holder):
            return False
        inner = above
    return False


def _looked_into(above: cst.CSTNode, inner: cst.CSTNode, holder: cst.BaseExpression) -> bool:
    """Bare names don't count: what they name is looked into only afterwards."""
    for child in children(above):
        if child is inner:
            return False
        part = child.value if isinstance(child, cst.Arg) else child
        if not isinstance(part, cst.Name) and set(reads(part)) & set(reads(holder)):
            return True
    return False
