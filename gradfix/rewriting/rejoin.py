"""From the span of a cut to the edits that join the graph again; plain numbers stay where they are logged."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import libcst as cst

from gradfix.defects import Defect, Span
from gradfix.defects.severed import Cut as CutFacts
from gradfix.rewriting.calls import last_name
from gradfix.rewriting.dissolve import recorded
from gradfix.rewriting.inplaces import kept_beside, written_at_once
from gradfix.rewriting.names import binds, walk
from gradfix.rewriting.numpytwins import NoTwinError, array_function, imported
from gradfix.rewriting.registering import registers
from gradfix.rewriting.seats import appended, dotted, one_line, put, shown, targets, vanished
from gradfix.rewriting.sources import Sources, assigned_value
from gradfix.rewriting.statements import node_of
from gradfix.rewriting.uncut import (
    WRAPPERS,
    Uncut,
    freed,
    method_of,
    unwrapped,
)
from gradfix.rule import Decline, Edit, Fix
from gradfix.tape.effects.operations import also_in_place, having
from gradfix.tree import Tree

CUT_FORMS = also_in_place(having("detaches"))
ARRAY_FORMS = {"numpy", "math", "tolist"}
PASSES = (cst.BinaryOperation, cst.UnaryOperation, cst.Subscript)
PLOTS = {"numpy", "matplotlib.pyplot"}
UNHELD = "no optimizer is known to hold what then gets a gradient"
BESIDE = "what this loss hasn't trained then gets a gradient, too"
TAUGHT = "what this loss trains by its other terms then gets another gradient"
SHORT = 40
Swaps = dict[cst.BaseExpression, cst.BaseExpression]


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a graph was cut, and how."""

    span: Span
    form: str = "detach"
    logged: tuple[Span, ...] = ()
    held: bool = True
    backward: Span | None = None
    shared: bool = False
    taught: bool = False


def cut_of(defect: Defect) -> Cut:
    """The cut that a defect's culprit is."""
    facts = defect.told(CutFacts)
    return Cut(
        defect.culprit,
        facts.form or "detach",
        facts.logged,
        facts.held,
        facts.backward,
        facts.shared,
        facts.taught,
    )


def any_cut(tree: Tree, span: Span) -> Fix | Decline:
    """The fix for a cut of any kind, told apart by what stands there."""
    node = tree.at(span, cst.BaseExpression)
    name = last_name(node.func if isinstance(node, cst.Call) else node) if node is not None else ""
    if node is None or isinstance(tree.parent(node), cst.Decorator) or name == "set_grad_enabled":
        return recorded(tree, span, ())
    return rejoined(Cut(span, name if name in CUT_FORMS | ARRAY_FORMS else "item"), tree)


def rejoined(cut: Cut, tree: Tree) -> Fix | Decline:
    """The fix that keeps the tensor where the cut stood."""
    edits = rejoining(cut, tree)
    unsafe = UNHELD if not cut.held else BESIDE if cut.shared else TAUGHT if cut.taught else ""
    return edits if isinstance(edits, Decline) else Fix(edits, shown(tree, edits), unsafe)


def rejoining(cut: Cut, tree: Tree) -> tuple[Edit, ...] | Decline:
    """The edits that keep the tensor where the cut stood."""
    node = tree.at(cut.span, cst.BaseExpression)
    if node is None:
        return Decline("take the cut out by hand: it stands where gradfix cannot rewrite")
    small = tree.small_statement(node)
    if small is not None and tree.parent(node) is small and isinstance(small, cst.Expr):
        if isinstance(node, cst.Call) and last_name(node.func) == "requires_grad_":
            return Decline("requires_grad_() only hides a cut before it: take that one out")
        return vanished(tree, small)
    try:
        swaps = _swaps(cut, tree, node)
    except NoTwinError as obstacle:
        text = one_line(tree.code(node))
        without = f"`{text}`" if len(text) <= SHORT else "the conversion"
        return Decline(f"{obstacle}: write it with operations of torch, without {without}")
    if written_at_once(tree, swaps) or kept_beside(tree, node, cut.form):
        return Decline("write out of place what is cut off here: with a graph, others would see the write")
    if any(registers(tree, old, new) for old, new in swaps.items()):
        return Decline("use the parameter where it is needed: an attribute that holds it would register it")
    edits = put(tree, swaps)
    return edits or Decline("compute the loss from the tensor itself, not from a converted copy")


def _swaps(cut: Cut, tree: Tree, node: cst.BaseExpression) -> Swaps:
    top = _top(tree, node, cut.form)
    sources = Sources(tree, node)
    if any(sources.collect(value) for value in _built_from(node)):
        return _rebuilt(tree, top, sources)
    lists = _lists(tree, node, cut.form)
    uncut = Uncut(tree, {node}, lists=lists)
    swaps: Swaps = {top: uncut(top)}
    for use, kept in (*_entries(tree, node, lists), *_plain_uses(cut, tree, top)):
        if not any(above in swaps for above in (use, *tree.ancestors(use))):
            swaps[use] = kept
    return swaps


def _built_from(node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """What a constructor makes its tensor from."""
    if isinstance(node, cst.Call) and node.args and last_name(node.func) in WRAPPERS:
        yield node.args[0].value


def _rebuilt(tree: Tree, top: cst.BaseExpression, sources: Sources) -> Swaps:
    """What a tensor built from plain numbers becomes, and the places where those numbers were made."""
    swaps, uncut = sources.swaps()
    swaps[top] = uncut(top)
    for name in set(sources.made) - set(uncut.inline):
        for use in _other_uses(tree, top, name, swaps):
            if name in sources.lists:
                raise NoTwinError(f"`{name}` is used as plain numbers elsewhere")
            swaps[use] = _converted(use, "item")
    return swaps


def _other_uses(tree: Tree, top: cst.BaseExpression, name: str, swaps: Swaps) -> Iterator[cst.Name]:
    """Where a name that carried a plain number is read besides, once all of it was computed."""
    last = max(swaps, key=lambda node: tree.span(node) if node is not top else Span(0, 0, 0, 0))
    passed = False
    for node in walk(tree.function(top) or tree.module):
        passed = passed or node is last
        inside = any(above in swaps for above in tree.ancestors(node))
        if (
            passed
            and not inside
            and isinstance(node, cst.Name)
            and node.value == name
            and _is_read(tree, node)
        ):
            yield node


def _is_read(tree: Tree, node: cst.Name) -> bool:
    parent = tree.parent(node)
    if isinstance(parent, (cst.AssignTarget, cst.AugAssign)):
        return False
    named = isinstance(parent, (cst.Attribute, cst.Arg)) and parent.value is not node
    counted = isinstance(parent, cst.Arg) and getattr(tree.parent(parent), "func", None)
    return not named and dotted(counted or node) != "len" and not isinstance(parent, cst.Attribute)


def _top(tree: Tree, node: cst.BaseExpression, form: str) -> cst.BaseExpression:
    """The outermost expression that the conversion reaches: `np.mean(x.detach().numpy())`."""
    top = below = node
    for above in tree.ancestors(node):
        if not isinstance(above, cst.BaseExpression):
            if not isinstance(above, (cst.Arg, cst.Element)):
                break
        elif _converts(tree, above, below, form):
            top = below = above
        elif isinstance(above, PASSES) or method_of(above, below):
            below = above
        elif not isinstance(above, cst.Attribute):
            break
    return top


def _converts(tree: Tree, above: cst.BaseExpression, below: cst.BaseExpression, form: str) -> bool:
    """Whether an expression makes a plain value of the one below it, or goes on computing with one."""
    if unwrapped(above) is below:
        return True
    if isinstance(above, cst.Call) and array_function(tree, above.func)[0]:
        return True
    return form in ARRAY_FORMS and method_of(above, below)


def _lists(tree: Tree, node: cst.BaseExpression, form: str) -> set[str]:
    """The names among a constructor's arguments that are lists."""
    if not isinstance(node, cst.Call) or not node.args or not isinstance(node.args[0].value, cst.Name):
        return set()
    name = node.args[0].value.value
    return {name} if form == "tensor_of_list" or _assigned_list(tree, name) else set()


def _assigned_list(tree: Tree, name: str) -> bool:
    for node in walk(tree.module):
        value = assigned_value(node, name)
        if value is not None:
            return isinstance(value, (cst.List, cst.ListComp))
    return False


def _entries(
    tree: Tree, node: cst.CSTNode, lists: Collection[str]
) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """What is put into these lists as a plain number, and the tensor that it was read from."""
    for each in walk(tree.function(node) or tree.module):
        for receiver, entry in appended(each) if isinstance(each, cst.Call) else ():
            kept = freed(entry)
            if receiver in lists and kept is not entry:
                yield entry, kept


def _plain_uses(
    cut: Cut, tree: Tree, top: cst.BaseExpression
) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """The later uses as a plain value, with the conversion that each needs for itself."""
    for span in cut.logged:
        use = tree.at(span, cst.BaseExpression)
        if use is not None and not _for_backward(cut, tree, use):
            yield use, _converted(use, "detach" if cut.form in CUT_FORMS | ARRAY_FORMS - {"math"} else "item")
    if cut.form in CUT_FORMS:
        for name in targets(tree.small_statement(top)):
            for use in _array_uses(tree, top, name):
                yield use, _converted(use, "detach")


def _for_backward(cut: Cut, tree: Tree, use: cst.BaseExpression) -> bool:
    """Whether a use hands the value to the function that runs the backward."""
    arg, backward = tree.parent(use), node_of(tree, cut.backward)
    call = tree.parent(arg) if isinstance(arg, cst.Arg) else None
    function = tree.function(backward) if backward is not None else None
    if not isinstance(call, cst.Call) or function is None or function is tree.function(use):
        return False
    return last_name(call.func) == function.name.value


def _converted(value: cst.BaseExpression, method: str) -> cst.BaseExpression:
    return cst.Call(cst.Attribute(value, cst.Name(method)))


def _array_uses(tree: Tree, top: cst.BaseExpression, name: str) -> Iterator[cst.Name]:
    """Where a name is handed to numpy or to a plot, which take no tensor that requires grad."""
    bound = imported(tree)
    start = tree.small_statement(top)
    passed = False
    for node in walk(tree.function(top) or tree.module):
        if isinstance(node, cst.BaseSmallStatement):
            if passed and name in binds(node):
                return
            passed = passed or node is start
        if passed and isinstance(node, cst.Name) and node.value == name and _needs_array(tree, node, bound):
            yield node


def _needs_array(tree: Tree, node: cst.Name, bound: Mapping[str, str]) -> bool:
    parent = tree.parent(node)
    if isinstance(parent, cst.Attribute):
        return parent.value is node and parent.attr.value == "numpy"
    call = tree.parent(parent) if isinstance(parent, cst.Arg) else None
    if not isinstance(call, cst.Call):
        return False
    return bound.get(dotted(call.func).partition(".")[0]) in PLOTS
