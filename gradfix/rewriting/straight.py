"""Straight-through estimators: a value goes on rounded, and its gradient as if it were not."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import libcst as cst

from gradfix.rewriting.calls import keyword, last_name
from gradfix.rewriting.holders import repeatable
from gradfix.rewriting.names import binds, walk
from gradfix.rewriting.statements import Draft, anchor
from gradfix.rewriting.surrogates import operands, writes
from gradfix.rule import Edit, Fix
from gradfix.tape.effects.operations import having

if TYPE_CHECKING:
    from gradfix.defects.severed import NoGradient, Unreached
    from gradfix.tree import Tree

CHOSEN = "its gradient is that of what it is chosen for, which is a choice of the model"
BEST = "its gradient is that of the scores, which is a choice of the model"
CASTS = having("moves")
IDENTITY = "its gradient is that of what is rounded, which is a choice of the model"
DIMS = ("dim", "axis")
LOWEST = (cst.Arg, cst.Assign, cst.AnnAssign, cst.Return, cst.Index, cst.Element, cst.Expr)
"""Where an expression needs no brackets."""


def straight_through(tree: Tree, call: cst.CSTNode | None) -> Fix | None:
    """`x + (x.round() - x).detach()` for `x.round()`: where x isn't a name, what gets the result holds it."""
    given = operands(tree, call) if isinstance(call, cst.Call) else []
    if not isinstance(call, cst.Call) or len(given) != 1 or writes(call):
        return None
    before = given[0]
    if isinstance(before, (cst.Name, cst.Attribute, cst.Subscript)) and repeatable(before):
        new = _estimator(tree, call, tree.code(before))
        return Fix((Edit(call, _in_brackets(tree, call, new)),), tree.code(new), IDENTITY)
    name = _name_of(tree, call)
    if name is None or "\n" in tree.code(call):
        return None
    renamed = call.deep_replace(before, cst.Name(name))
    assert isinstance(renamed, cst.Call)
    new = _estimator(tree, renamed, name)
    draft = Draft(tree)
    draft.before(anchor(tree, call), f"{name} = {tree.code(before)}")
    draft.swap(call, new)
    return Fix(draft.edits(), tree.code(new), IDENTITY)


def chosen_through(tree: Tree, facts: Unreached) -> Fix | None:
    """`codes[index] + (z - z.detach())` for what z is nearest to: the codes learn as before."""
    if facts.chosen is None or facts.scored is None or facts.cut is None or not facts.alone:
        return None
    looked = tree.at(facts.chosen, cst.Subscript, cst.Call)
    scored = tree.at(facts.scored, cst.Call, cst.BinaryOperation)
    if not isinstance(looked, (cst.Subscript, cst.Call)) or scored is None:
        return None
    name = _scored_for(tree, scored)
    function = tree.function(looked)
    if name is None or tree.function(scored) is not function:
        return None
    scope = function or tree.module
    if _bound(scope).count(name) != 1 or "\n" in tree.code(looked):
        return None
    if not _along_the_last(tree, facts, 1 if _is_matrix(tree, scope, name) else facts.rank):
        return None
    new = cst.parse_expression(f"{tree.code(looked)} + ({name} - {name}.detach())")
    return Fix((Edit(looked, _in_brackets(tree, looked, new)),), tree.code(new), CHOSEN)


def best_through(tree: Tree, facts: NoGradient | Unreached, hot: cst.CSTNode | None) -> Fix | None:
    """`one_hot(p.argmax(-1), n) + (p - p.detach())`, where n surely is how many there are to choose from."""
    if isinstance(hot, cst.Call) and last_name(hot.func) == "argmax":
        hot = _given_to(tree, hot)
    if not isinstance(hot, cst.Call) or last_name(hot.func) != "one_hot" or not (hot.args and facts.learnt):
        return None
    index = _value(tree, hot.args[0].value)
    scores = next(iter(operands(tree, index)), None) if isinstance(index, cst.Call) else None
    if (
        not isinstance(index, cst.Call)
        or last_name(index.func) != "argmax"
        or not isinstance(scores, cst.Name)
    ):
        return None
    name = scores.value
    if _bound(_scope(tree, index)).count(name) != 1 or not _along_last(tree, index, facts.rank):
        return None
    given = [*hot.args[1:2], keyword(hot, "num_classes")]
    number = next((tree.code(one.value) for one in given if one is not None), "")
    if number not in {f"{name}.shape[-1]", f"{name}.size(-1)", f"{name}.size()[-1]", str(facts.width)}:
        return None
    whole = _cast(tree, hot)
    if "\n" in tree.code(whole):
        return None
    new = cst.parse_expression(f"{tree.code(whole)} + ({name} - {name}.detach())")
    return Fix((Edit(whole, _in_brackets(tree, whole, new)),), tree.code(new), BEST)


def _scope(tree: Tree, node: cst.CSTNode) -> cst.FunctionDef | cst.Module:
    return tree.function(node) or tree.module


def _given_to(tree: Tree, index: cst.Call) -> cst.CSTNode | None:
    """The call that is given this, or the one name that is bound to it."""
    above: cst.CSTNode | None = tree.parent(index)
    if isinstance(above, cst.Assign) and isinstance(name := above.targets[0].target, cst.Name):
        read = [one for one in walk(_scope(tree, index)) if isinstance(one, cst.Name) and one is not name]
        given = [tree.parent(one) for one in read if one.value == name.value]
        above = given[0] if len(given) == 1 else None
    return tree.parent(above) if isinstance(above, cst.Arg) else None


def _value(tree: Tree, given: cst.BaseExpression) -> cst.BaseExpression | None:
    """What is given, or what the one name is bound to under which it is."""
    if not isinstance(given, cst.Name):
        return given
    scope = _scope(tree, given)
    made = [one for one in walk(scope) if isinstance(one, cst.Assign) and given.value in binds(one)]
    once = len(made) == 1 and _bound(scope).count(given.value) == 1 and len(made[0].targets) == 1
    return made[0].value if once and isinstance(made[0].targets[0].target, cst.Name) else None


def _cast(tree: Tree, call: cst.Call) -> cst.Call:
    """A call with the casts that follow it."""
    named = tree.parent(call)
    if not isinstance(named, cst.Attribute) or named.attr.value not in CASTS:
        return call
    around = tree.parent(named)
    return _cast(tree, around) if isinstance(around, cst.Call) and around.func is named else call


def _bound(scope: cst.FunctionDef | cst.Module) -> list[str]:
    """What is bound in a function or module, each as often as that is done."""
    if isinstance(scope, cst.Module):
        return list(binds(scope))
    given = (*scope.params.posonly_params, *scope.params.params, *scope.params.kwonly_params)
    return [*(one.name.value for one in given), *binds(scope.body)]


def _is_matrix(tree: Tree, scope: cst.FunctionDef | cst.Module, name: str) -> bool:
    """Whether a name is bound to `x.view(-1, width)`."""
    made = (one.value for one in walk(scope) if isinstance(one, cst.Assign) and name in binds(one))
    return any(
        isinstance(one, cst.Call)
        and last_name(one.func) in ("view", "reshape")
        and isinstance(one.func, cst.Attribute)
        and [arg.star for arg in one.args if arg.keyword is None] == ["", ""]
        and tree.code(one.func.value) != tree.torch
        for one in made
    )


def _along_the_last(tree: Tree, facts: Unreached, rank: int | None) -> bool:
    index = tree.at(facts.cut, cst.Call) if facts.cut is not None else None
    return index is not None and _along_last(tree, index, rank)


def _along_last(tree: Tree, index: cst.Call, rank: int | None) -> bool:
    """Whether an index is taken along the last dimension, and without keeping it."""
    if keyword(index, "keepdim") is not None:
        return False
    given = [*operands(tree, index)[1:], *(one.value for one in map(partial(keyword, index), DIMS) if one)]
    return len(given) == 1 and tree.code(given[0]) in ("-1", str(rank))


def _scored_for(tree: Tree, scored: cst.CSTNode | None) -> str | None:
    """The name of what is held against a codebook, perhaps times a number."""
    left: cst.BaseExpression | None = None
    if isinstance(scored, cst.Call):
        left = next(iter(operands(tree, scored)), None)
    elif isinstance(scored, cst.BinaryOperation):
        left = scored.left
    if isinstance(left, cst.BinaryOperation) and isinstance(left.operator, cst.Multiply):
        sides = [left.left, left.right]
        left = next((one for one in sides if not isinstance(one, (cst.Integer, cst.Float))), None)
        left = left if any(isinstance(one, (cst.Integer, cst.Float)) for one in sides) else None
    return left.value if isinstance(left, cst.Name) else None


def _estimator(tree: Tree, rounded: cst.Call, before: str) -> cst.BaseExpression:
    return cst.parse_expression(f"{before} + ({tree.code(rounded)} - {before}).detach()")


def _in_brackets(tree: Tree, call: cst.BaseExpression, new: cst.BaseExpression) -> cst.BaseExpression:
    if isinstance(tree.parent(call), LOWEST) or call.lpar:
        return new
    return new.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def _name_of(tree: Tree, call: cst.Call) -> str | None:
    """The name that a statement binds to the result of a call, and to nothing else."""
    around = tree.parent(call)
    if not isinstance(around, cst.Assign) or len(around.targets) != 1:
        return None
    target = around.targets[0].target
    return target.value if isinstance(target, cst.Name) else None
