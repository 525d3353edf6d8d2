"""`backward()` on a tensor of several elements, without saying what the gradient of each is.

Autograd computes the gradient of one number. For a tensor of several elements it cannot know how to weigh
them, and raises "grad can be implicitly created only for scalar outputs". Most often the reduction was
forgotten: after an elementwise error, or with a loss that was built with `reduction="none"`.

The rewrite reduces at the backward: `z.sum().backward()`, or `.mean()` where the code itself or the
configuration (`reduction = "mean"`) says so. Where the loss is read as one number as well (`loss.item()`),
it is reduced where it is made; the fix is unsafe where it is handed to the function that runs backward. Where
a loss that was told `reduction="none"` goes further than to this backward, it is told `"mean"`, which is
unsafe as it changes what all others get. Left alone: one element, a `gradient=` argument, and losses of
unknown shape.
"""

from __future__ import annotations

import libcst as cst

from gradfix.defects import Defect, Role
from gradfix.rewriting import shapes as m
from gradfix.rewriting.calls import last_name
from gradfix.rewriting.reductions import assigned, at_its_source, told_not_to
from gradfix.rewriting.statements import anchor, method_call, siblings
from gradfix.rule import Decline, Edit, Fix, Options, Rule
from gradfix.tree import Tree

SEVERAL = (cst.Tuple, cst.List, cst.ListComp, cst.GeneratorExp)


def rewrite(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    call = tree.at(defect.culprit, cst.Call)
    root = _root(call) if call is not None else None
    if call is None or root is None or isinstance(root, SEVERAL):
        return Decline("reduce what backward runs on to one element, with .sum() or .mean()")
    loss = _made(tree, defect)
    elsewhere = at_its_source(tree, call, root, loss) if loss is not None else None
    if elsewhere is not None:
        return elsewhere
    unreduced = _unreduced(tree, _scaled(root)) or (loss is not None and told_not_to(tree, loss) is not None)
    told = "mean" if unreduced else options.reduction
    made = _made_as_a_number(tree, call, root)
    if made is not None:
        reduced = method_call(made, str(told))
        return Fix((Edit(made, reduced),), f"{tree.code(root)} = {' '.join(tree.code(reduced).split())}")
    reduced = method_call(root, str(told))
    says = " ".join(tree.code(call).replace(tree.code(root), tree.code(reduced), 1).split())
    others = _given(tree, call, root) or _read_as_a_number(tree, call, _scaled(root))
    return Fix((Edit(root, reduced),), says, OTHERS if others else "")


OTHERS = "others read this loss as one number, which it is only where it is made"


def _given(tree: Tree, call: cst.Call, root: cst.BaseExpression) -> bool:
    """Whether the loss is an argument, which others of the file read as one number under the same name."""
    function = tree.function(call)
    if function is None or not isinstance(root, cst.Name):
        return False
    return any(param.name.value == root.value for param in function.params.params) and bool(
        m.findall(tree.module, _number(root.value))
    )


def _made(tree: Tree, defect: Defect) -> cst.Call | None:
    """The call that made the tensor of several elements."""
    places = [one.span for one in defect.evidence if one.role is Role.MADE_LARGE and one.path is None]
    return tree.at(places[0], cst.Call) if places else None


def _made_as_a_number(tree: Tree, call: cst.Call, root: cst.BaseExpression) -> cst.BaseExpression | None:
    """What the loss is assigned, once, where it is read as one number elsewhere: that is what has to be
    one."""
    root = _scaled(root)
    if not isinstance(root, cst.Name) or not _read_as_a_number(tree, call, root):
        return None
    scope, name = tree.function(call) or tree.module, m.Name(root.value)
    targets = m.findall(scope, m.AssignTarget(name) | m.AugAssign(name) | m.NamedExpr(name))
    made = m.findall(scope, m.Assign(targets=[m.AssignTarget(name)]))
    if len(made) < len(targets):
        return None
    here = anchor(tree, call)
    row = siblings(tree, here)
    before = row[: row.index(here)]
    near = [one for one in made if anchor(tree, one) in before]
    one = (made if len(made) == 1 else near)[-1:]
    return one[0].value if one and isinstance(one[0], cst.Assign) else None


def _scaled(root: cst.BaseExpression) -> cst.BaseExpression:
    """The loss of `loss / 2` and `0.5 * loss`."""
    if not isinstance(root, cst.BinaryOperation) or not isinstance(root.operator, (cst.Multiply, cst.Divide)):
        return root
    if isinstance(root.right, cst.BaseNumber):
        return root.left
    return root.right if isinstance(root.left, cst.BaseNumber) else root


def _number(name: str) -> m.Shape:
    item = m.Call(func=m.Attribute(value=m.Name(name), attr=m.Name("item")))
    told: m.Shape = item | m.Call(func=m.Name("float"), args=[m.Arg(m.Name(name))])
    return told


def _read_as_a_number(tree: Tree, call: cst.Call, root: cst.BaseExpression) -> bool:
    """Whether the function that runs backward reads the loss so, or one that gets the loss from it."""
    if not isinstance(root, cst.Name):
        return False
    function, name = tree.function(call), m.Name(root.value)
    scope = function or tree.module
    if m.findall(scope, _number(root.value)) or _handed(tree, scope, root.value):
        return True
    if function is None:
        return False
    handed_out = _hands_out(function, name) and m.findall(tree.module, _number(root.value))
    return bool(handed_out) or _steps_with(tree, function, name)


def _handed(tree: Tree, scope: cst.CSTNode, name: str) -> bool:
    """Whether a function of the file that is called with the loss reads that as one number."""
    for call in m.findall(scope, m.Call()):
        if not isinstance(call, cst.Call):
            continue
        places = [n for n, arg in enumerate(call.args) if m.matches(arg, m.Arg(m.Name(name)))]
        for function in m.findall(tree.module, m.FunctionDef(m.Name(last_name(call.func)))) if places else ():
            assert isinstance(function, cst.FunctionDef)
            names = [each.name.value for each in function.params.params]
            names = names[1:] if isinstance(call.func, cst.Attribute) else names
            if any(n < len(names) and m.findall(function, _number(names[n])) for n in places):
                return True
    return False


def _hands_out(function: cst.FunctionDef | None, name: m.Shape) -> bool:
    """Whether a function returns this name, alone or beside others."""
    if function is None:
        return False
    returned = [one.value for one in m.findall(function, m.Return()) if isinstance(one, cst.Return)]
    beside = [part.value for one in returned if isinstance(one, cst.Tuple) for part in one.elements]
    return any(m.matches(one, name) for one in (*returned, *beside))


def _steps_with(tree: Tree, function: cst.FunctionDef, name: m.Shape) -> bool:
    """Whether a function is the closure of an optimizer's step and returns this name."""
    stepping = m.Call(func=m.Attribute(attr=m.Name("step")), args=[m.Arg(m.Name(function.name.value))])
    return bool(m.findall(function, m.Return(name)) and m.findall(tree.module, stepping))


def _root(call: cst.Call) -> cst.BaseExpression | None:
    """What backward runs on: the owner of the method, or what a function that runs backward is given.

    The method's own first argument is the gradient; with one there would be no defect.
    """
    given = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
    if given and not m.matches(given[0], m.Name("None")):
        return given[0]
    if isinstance(call.func, cst.Attribute) and call.func.attr.value == "backward":
        return _unscaled(call.func.value)
    return None


def _unreduced(tree: Tree, root: cst.BaseExpression) -> bool:
    """Whether the loss function was told not to reduce; without that it takes the mean."""
    made = root if isinstance(root, cst.Call) else assigned(tree, tree.code(root))
    return made is not None and told_not_to(tree, made) is not None


def _unscaled(owner: cst.BaseExpression) -> cst.BaseExpression:
    """The loss inside `scaler.scale(loss)`: it is reduced before it is scaled."""
    if not isinstance(owner, cst.Call) or not isinstance(owner.func, cst.Attribute):
        return owner
    return owner.args[0].value if owner.func.attr.value == "scale" and len(owner.args) == 1 else owner


RULE = Rule(
    code="GF301",
    message="`{root}` has more than one element, so backward needs a reduction or a gradient",
    sometimes_unsafe=True,
    rewrite=rewrite,
)
