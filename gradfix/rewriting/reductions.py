"""Lets a loss reduce that was told not to, where more than one place wants one number of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from gradfix.defects.records import NonScalar
from gradfix.rewriting import shapes as m
from gradfix.rewriting.arguments import keyword
from gradfix.rewriting.calls import last_name
from gradfix.rewriting.names import walk
from gradfix.rewriting.one_number import indexed
from gradfix.rewriting.statements import method_call
from gradfix.rule import Edit, Fix
from gradfix.tape.effects.operations import having, where
from gradfix.tree import Tree

EVERYWHERE = "it is reduced wherever this loss is used"
UNREDUCED = "others that use this loss get it unreduced, as before"
REDUCED = where("shape", "reduced") | having("selects")


class Criterion:
    """The loss that backward runs on, where it was told not to reduce: what says so, and who calls it.

    `made` is the call that made what backward runs on, if it is known.
    """

    def __init__(self, tree: Tree, facts: NonScalar, made: cst.Call | None) -> None:
        self.tree = tree
        self.elsewhere = facts.elsewhere
        found = [tree.at(span, cst.Call) for span in facts.built]
        self.built = [one for one in found if one is not None]
        if not self.built and made is not None and (said := told_not_to(tree, made)) is not None:
            self.built = [said]
        self.told = bool(self.built) or facts.elsewhere
        asked = [tree.at(span, cst.Call) for span in facts.asked]
        calls = [made if made in self.built else None, *asked, *_by_name(tree, self.built)]
        self.sites = list(dict.fromkeys(call for call in calls if call is not None))

    def at_its_source(self, backward: cst.CSTNode, root: cst.BaseExpression) -> Fix | None:
        """It reduces, where its result goes further than to this backward."""
        if not self.built or not all(map(says_none, self.built)) or self.needed_whole():
            return None
        if self._alone(backward) and not _returned(self.tree, backward, root):
            return None
        told = [_told_mean(one) for one in self.built]
        edits = [Edit(old, new) for old, new in told]
        says = " ".join(self.tree.code(self.built[0].deep_replace(*told[0])).split())
        return Fix((*edits, *self._old_reads()), says, EVERYWHERE)

    def needed_whole(self) -> bool:
        """Whether somebody needs it for each element."""
        return any(_by_elements(self.tree, site) for site in self.sites)

    def half(self, backward: cst.CSTNode) -> bool:
        """Whether others would still get it unreduced who may want one number, as this backward does."""
        here = self.tree.function(backward)
        others = (site for site in self.sites if self.tree.function(site) is not here)
        return self.elsewhere or any(not _by_elements(self.tree, site) for site in others)

    def _alone(self, backward: cst.CSTNode) -> bool:
        here = self.tree.function(backward)
        return len(self.sites) == 1 and self.tree.function(self.sites[0]) is here and not self.elsewhere

    def _old_reads(self) -> Iterator[Edit]:
        """The reads of its results that one number doesn't take."""
        made = ((site, self.tree.parent(site)) for site in self.sites)
        named = [(site, above.targets[0].target) for site, above in made if isinstance(above, cst.Assign)]
        reads = [one for site, name in named for one in indexed(self.tree, site, self.tree.code(name))]
        return map(as_item, dict.fromkeys(reads))


def as_item(read: cst.Subscript) -> Edit:
    """`loss.item()` for `loss.data[0]`."""
    return Edit(read, method_call(cst.ensure_type(read.value, cst.Attribute).value, "item"))


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


def _told_mean(built: cst.Call) -> tuple[cst.Arg, cst.Arg]:
    """What a loss is told, and what it is to be told."""
    given = keyword(built, "reduction")
    assert given is not None
    return given, given.with_changes(value=cst.SimpleString('"mean"'))


def _by_name(tree: Tree, built: Sequence[cst.Call]) -> Iterator[cst.Call]:
    """The calls under a name that only these losses have: nobody may have run them."""
    for one in built:
        above = tree.small_statement(one)
        if isinstance(above, cst.Assign) and len(above.targets) == 1:
            name = tree.code(above.targets[0].target)
            if assigned(tree, name) is above.value:
                yield from _calls(tree, name)


def _calls(tree: Tree, name: str) -> list[cst.Call]:
    calls = (call for call in m.findall(tree.module, m.Call()) if isinstance(call, cst.Call))
    return [call for call in calls if tree.code(call.func) == name]


def _returned(tree: Tree, backward: cst.CSTNode, root: cst.BaseExpression) -> bool:
    """Whether the function that runs backward hands the loss on."""
    function = tree.function(backward)
    returns = m.findall(function, m.Return()) if function is not None else ()
    return any(tree.code(one) == tree.code(root) for each in returns for one in walk(each))


def _by_elements(tree: Tree, site: cst.Call) -> bool:
    """Whether what a loss returns is weighed, chosen from or reduced element by element."""
    above = tree.parent(site)
    if not isinstance(above, cst.Assign):
        return _weighed(tree, above)
    return read_by_elements(tree, tree.function(site) or tree.module, tree.code(above.targets[0].target))


def read_by_elements(tree: Tree, scope: cst.CSTNode, text: str) -> bool:
    """Whether some code weighs what an expression holds, chooses from it or reduces it."""
    reads = [one for one in walk(scope) if isinstance(one, cst.BaseExpression)]
    return any(tree.code(one) == text and _weighed(tree, tree.parent(one)) for one in reads)


def _weighed(tree: Tree, above: cst.CSTNode) -> bool:
    if isinstance(above, cst.Attribute):
        return above.attr.value in REDUCED
    if isinstance(above, cst.Arg):
        call = tree.parent(above)
        return isinstance(call, cst.Call) and call.args[0] is above and last_name(call.func) in REDUCED
    product = isinstance(above, cst.BinaryOperation) and isinstance(above.operator, cst.Multiply)
    numbers = product and any(isinstance(one, cst.BaseNumber) for one in (above.left, above.right))  # type: ignore[attr-defined]
    return isinstance(above, cst.Subscript) or (product and not numbers)
