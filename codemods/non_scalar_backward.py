"""`backward()` on a tensor of several elements, without saying what the gradient of each is.

Autograd computes the gradient of one number. For a tensor of several elements it cannot know how to weigh
them, and raises "grad can be implicitly created only for scalar outputs". Most often the reduction was
forgotten: after an elementwise error, or with a loss that was built with `reduction="none"`.

The rewrite reduces at the backward: `z.sum().backward()`, or `.mean()` where the code itself or the
configuration (`reduction = "mean"`) says so. Where one term of a sum has several elements beside single
numbers, that term is: by its mean, or, unsafely, by its sum where the others are sums. Where the loss is
read as one number as well (`loss.item()`, `f"{loss:.3f}"`), it is reduced where it is made; the fix is
unsafe where it is handed to the function that runs backward. Where a loss that was told `reduction="none"`
goes further than to this backward, it is told `"mean"`, which is unsafe as it changes what all others get;
where somebody needs it for each element, or it is built in another file, it is reduced here, which is
unsafe where others may want one number too. Left alone: one element, a `gradient=` argument, and losses of
unknown shape.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

import libcst as cst

from gradfix.defects import Defect, Role
from gradfix.defects.records import NonScalar
from gradfix.rewriting import shapes as m
from gradfix.rewriting.calls import last_name
from gradfix.rewriting.names import walk
from gradfix.rewriting.one_number import indexed, read_as_one
from gradfix.rewriting.reductions import (
    UNREDUCED,
    Criterion,
    as_item,
    assigned,
    read_by_elements,
    told_not_to,
)
from gradfix.rewriting.statements import anchor, method_call, siblings
from gradfix.rule import Decline, Edit, Fix, Options, Rule
from gradfix.tree import Tree

LOSS = m.DictElement(key=m.SimpleString('"loss"')) | m.DictElement(key=m.SimpleString("'loss'"))
"""Under which key frameworks are given what they backpropagate."""
NAMED = m.Arg(keyword=m.Name("tensors") | m.Name("outputs"))
"""How a function is given by name what it runs backward on."""
Walks: TypeAlias = "cst.Call | cst.Return"
"""What runs backward, or hands its root to who does."""
SEVERAL = (cst.Dict, cst.Tuple, cst.List, cst.ListComp, cst.GeneratorExp)


def rewrite(defect: Defect, tree: Tree, options: Options) -> Fix | Decline:
    call = tree.at(defect.culprit, cst.Call) or tree.at(defect.culprit, cst.Return)
    root = _root(call) if call is not None else None
    if call is None or root is None or isinstance(root, SEVERAL):
        return Decline("reduce what backward runs on to one element, with .sum() or .mean()")
    criterion = Criterion(tree, defect.told(NonScalar), _made(tree, defect))
    whole = read_by_elements(tree, tree.function(call) or tree.module, tree.code(_scaled(root)))
    term = None if whole else _term_reduced(tree, defect.told(NonScalar), criterion.told)
    return (
        criterion.at_its_source(call, root) or term or _reduced_here(tree, (call, root), criterion, options)
    )


def _term_reduced(tree: Tree, facts: NonScalar, unreduced: bool) -> Fix | None:
    """One term of the loss reduced, where all others are single numbers: the loss is then that which the mean
    of all its elements would be."""
    term = tree.at(facts.term, cst.BaseExpression) if facts.term is not None else None
    whole = tree.small_statement(term) if term is not None else None
    if term is None or whole is None:
        return None
    inner = _scaled(term)
    reading = Reading(tree, inner, inner, unreduced)
    old = reading.made() or inner
    told = "sum" if not unreduced and not _unreduced(tree, inner) and _sums(tree, whole, term) else "mean"
    new = method_call(old, told)
    says = " ".join(tree.code(new if old is not inner else whole.deep_replace(old, new)).split())
    says = f"{tree.code(inner)} = {says}" if old is not inner else says
    return Fix((Edit(old, new),), says, ANOTHER_SUM if told == "sum" else "")


def _sums(tree: Tree, whole: cst.CSTNode, term: cst.CSTNode) -> bool:
    """Whether the terms beside one are sums."""
    inside = set(walk(term))
    beside = [one for one in walk(whole) if one not in inside]
    named = [assigned(tree, one.value) for one in beside if isinstance(one, cst.Name)]
    texts = [tree.code(one) for one in (*beside, *named) if isinstance(one, cst.Call)]
    return any(SUM.search(text) for text in texts)


def _written(tree: Tree, element: cst.Subscript) -> bool:
    """Whether something is put there, where one number has no element."""
    above = tree.parent(element)
    augmented = isinstance(above, cst.AugAssign) and above.target is element
    return augmented or isinstance(above, (cst.AssignTarget, cst.AnnAssign))


def _reduced_here(
    tree: Tree, backward: tuple[Walks, cst.BaseExpression], criterion: Criterion, options: Options
) -> Fix:
    """The loss reduced at its backward, or where it is made as it is read as one number elsewhere."""
    call, root = backward
    unreduced = criterion.told or _unreduced(tree, _scaled(root))
    told = "mean" if unreduced else options.reduction
    half = UNREDUCED if criterion.half(call) else ""
    reading = Reading(tree, call, _scaled(root), unreduced)
    made = reading.made()
    old = indexed(tree, made, tree.code(reading.root)) if made is not None else []
    if made is not None and not any(_written(tree, one) for one in old):
        reduced = method_call(made, str(told))
        says = f"{tree.code(root)} = {' '.join(tree.code(reduced).split())}"
        return Fix((Edit(made, reduced), *map(as_item, old)), says, half)
    reduced = method_call(root, str(told))
    says = " ".join(tree.code(call).replace(tree.code(root), tree.code(reduced), 1).split())
    others = reading.given() or reading.anywhere()
    return Fix((Edit(root, reduced),), says, half or (OTHERS if others else ""))


ANOTHER_SUM = "the loss is the sum over that term alone then"
SUM = re.compile(r"\bsum\(|['\"]sum['\"]")
OTHERS = "others read this loss as one number, which it is only where it is made"


def _made(tree: Tree, defect: Defect) -> cst.Call | None:
    """The call that made the tensor of several elements."""
    places = [one.span for one in defect.evidence if one.role is Role.MADE_LARGE and one.path is None]
    return tree.at(places[0], cst.Call) if places else None


def _scaled(root: cst.BaseExpression) -> cst.BaseExpression:
    """The loss of `loss / 2` and `0.5 * loss`."""
    if not isinstance(root, cst.BinaryOperation) or not isinstance(root.operator, (cst.Multiply, cst.Divide)):
        return root
    if isinstance(root.right, cst.BaseNumber):
        return root.left
    return root.right if isinstance(root.left, cst.BaseNumber) else root


@dataclass(frozen=True)
class Reading:
    """Who reads the loss of a backward as one number; where it is `unreduced`, by showing it too."""

    tree: Tree
    call: cst.CSTNode
    root: cst.BaseExpression
    unreduced: bool

    def given(self) -> bool:
        """Whether the loss is an argument, which others of the file read so under the same name."""
        function = self.tree.function(self.call)
        if function is None or not isinstance(self.root, cst.Name):
            return False
        name = self.root.value
        return any(param.name.value == name for param in function.params.params) and self._in(
            self.tree.module, name
        )

    def made(self) -> cst.BaseExpression | None:
        """What the loss is assigned, once, where it is read as one number elsewhere: that is what has to be
        one."""
        root, tree = self.root, self.tree
        if not isinstance(root, cst.Name) or not self.anywhere():
            return None
        scope, name = tree.function(self.call) or tree.module, m.Name(root.value)
        targets = m.findall(scope, m.AssignTarget(name) | m.AugAssign(name) | m.NamedExpr(name))
        made = m.findall(scope, m.Assign(targets=[m.AssignTarget(name)]))
        if len(made) < len(targets):
            return None
        here = anchor(tree, self.call)
        row = siblings(tree, here)
        before = row[: row.index(here)]
        near = [one for one in made if anchor(tree, one) in before]
        one = (made if len(made) == 1 else near)[-1:]
        return one[0].value if one and isinstance(one[0], cst.Assign) else None

    def anywhere(self) -> bool:
        """Whether the function that runs backward reads the loss so, or one that gets the loss from it."""
        if not isinstance(self.root, cst.Name):
            return False
        function, name = self.tree.function(self.call), self.root.value
        scope = function or self.tree.module
        if self._in(scope, name) or self._handed(scope, name):
            return True
        if function is None:
            return False
        handed_out = _hands_out(function, m.Name(name)) and self._in(self.tree.module, name)
        return handed_out or _steps_with(self.tree, function, m.Name(name))

    def _in(self, scope: cst.CSTNode, name: str) -> bool:
        return read_as_one(self.tree, scope, name, self.unreduced)

    def _handed(self, scope: cst.CSTNode, name: str) -> bool:
        """Whether a function of the file that is called with the loss reads that as one number."""
        for call in m.findall(scope, m.Call()):
            if not isinstance(call, cst.Call):
                continue
            places = [n for n, arg in enumerate(call.args) if m.matches(arg, m.Arg(m.Name(name)))]
            named = m.FunctionDef(m.Name(last_name(call.func)))
            for function in m.findall(self.tree.module, named) if places else ():
                assert isinstance(function, cst.FunctionDef)
                names = [each.name.value for each in function.params.params]
                names = names[1:] if isinstance(call.func, cst.Attribute) else names
                if any(n < len(names) and self._in(function, names[n]) for n in places):
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


def _root(call: Walks) -> cst.BaseExpression | None:
    """What backward runs on: the owner of the method, or what a function that runs backward is given or gets
    back.

    The method's own first argument is the gradient; with one there would be no defect.
    """
    if isinstance(call, cst.Return):
        entries = call.value.elements if isinstance(call.value, cst.Dict) else ()
        losses = [one.value for one in entries if m.matches(one, LOSS)]
        return losses[0] if losses else call.value
    named = [arg.value for arg in call.args if m.matches(arg, NAMED)]
    given = named or [arg.value for arg in call.args if arg.keyword is None and not arg.star]
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
