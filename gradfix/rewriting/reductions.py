"""Lets a loss reduce that was told not to, where more than one place wants one number of it."""

from __future__ import annotations

import libcst as cst

from gradfix.rewriting import shapes as m
from gradfix.rewriting.arguments import keyword
from gradfix.rewriting.names import walk
from gradfix.rule import Edit, Fix
from gradfix.tape.effects.operations import having, where
from gradfix.tree import Tree

EVERYWHERE = "it is reduced wherever this loss is used"
REDUCED = where("shape", "reduced") | having("selects")


def at_its_source(tree: Tree, backward: cst.Call, root: cst.BaseExpression, loss: cst.Call) -> Fix | None:
    """The loss function reduces, where its result goes further than to this backward."""
    built = told_not_to(tree, loss)
    if built is None:
        return None
    sites = [loss] if built is loss else _calls(tree, tree.code(loss.func))
    alone = len(sites) == 1 and tree.function(loss) is tree.function(backward)
    if alone and not _returned(tree, backward, root):
        return None
    if any(_by_elements(tree, site) for site in sites):
        return None
    given = keyword(built, "reduction")
    assert given is not None
    new = given.with_changes(value=cst.SimpleString('"mean"'))
    return Fix((Edit(given, new),), " ".join(tree.code(built.deep_replace(given, new)).split()), EVERYWHERE)


def told_not_to(tree: Tree, loss: cst.Call) -> cst.Call | None:
    """The call that says `reduction="none"`: the loss itself, or the one that builds its function."""
    if says_none(loss):
        return loss
    built = assigned(tree, tree.code(loss.func))
    calls = (one for one in walk(built) if isinstance(one, cst.Call)) if built is not None else ()
    return next((one for one in calls if says_none(one)), None)


def assigned(tree: Tree, name: str) -> cst.Call | None:
    """The one call whose result the file gives this name, moved elsewhere (`loss = loss.cuda()`) or not."""
    found = m.findall(tree.module, m.Assign(value=m.Call()))
    named = [
        node
        for node in found
        if isinstance(node, cst.Assign)
        and tree.code(node.targets[0].target) == name
        and not tree.code(node.value).startswith(f"{name}.")
    ]
    value = named[0].value if len(named) == 1 else None
    return value if isinstance(value, cst.Call) else None


def says_none(call: cst.Call) -> bool:
    given = keyword(call, "reduction")
    return given is not None and isinstance(given.value, cst.SimpleString) and given.value.raw_value == "none"


def _calls(tree: Tree, name: str) -> list[cst.Call]:
    calls = (call for call in m.findall(tree.module, m.Call()) if isinstance(call, cst.Call))
    return [call for call in calls if tree.code(call.func) == name]


def _returned(tree: Tree, backward: cst.Call, root: cst.BaseExpression) -> bool:
    """Whether the function that runs backward hands the loss on."""
    function = tree.function(backward)
    returns = m.findall(function, m.Return()) if function is not None else ()
    return any(tree.code(one) == tree.code(root) for each in returns for one in walk(each))


def _by_elements(tree: Tree, site: cst.Call) -> bool:
    """Whether what a loss returns is weighed, chosen from or reduced element by element."""
    above = tree.parent(site)
    if not isinstance(above, cst.Assign):
        return _weighed(above)
    target, function = tree.code(above.targets[0].target), tree.function(site)
    reads = [one for one in walk(function or tree.module) if isinstance(one, cst.BaseExpression)]
    return any(tree.code(one) == target and _weighed(tree.parent(one)) for one in reads)


def _weighed(above: cst.CSTNode) -> bool:
    if isinstance(above, cst.Attribute):
        return above.attr.value in REDUCED
    product = isinstance(above, cst.BinaryOperation) and isinstance(above.operator, cst.Multiply)
    numbers = product and any(isinstance(one, cst.BaseNumber) for one in (above.left, above.right))  # type: ignore[attr-defined]
    return isinstance(above, cst.Subscript) or (product and not numbers)
