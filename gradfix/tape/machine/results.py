"""What an operation gives back: new memory or a view, its shape and its dtype, as far as they are known."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradfix.tape.domain.graph import Node, Storage, Tensor, upstream
from gradfix.tape.domain.values import NOTHING, Alt, Const, Seq, Unknown
from gradfix.tape.effects import contractions, layouts, pieces, shapes, strides
from gradfix.tape.effects.contractions import LOSSES, PRODUCTS, REDUCTIONS
from gradfix.tape.effects.geometry import ALIKE, AS_OTHER, JOINS, SHAPES
from gradfix.tape.effects.operations import having, told, where
from gradfix.tape.machine.cuts import CHOOSING

if TYPE_CHECKING:
    from gradfix.tape.domain.effect import Effect
    from gradfix.tape.domain.values import Place, Shape, Truth, Value
    from gradfix.tape.effects.overloads import Bound
    from gradfix.tape.machine.keeping import Keeping

AT_LEAST = told("at-least")
"""How many dimensions the result of an operation has at the least."""
SIZED = where("shape", "sized")
"""Operations that are told the sizes of their result."""
REPEATED = having("repeating")
REPEATING = having("repeating") | having("may-repeat")
CUTTING = having("cuts-up")
COPYING = having("may-copy")
"""Views where there is one of these sizes, copies elsewhere."""


SUMS = frozenset({"add", "sub"})
FEW = 8
"""So many operations may stand between a loss and the reduction that it came of."""
MANY = 64
"""How many results of one operation are told apart; of more, two stand for all."""


class Results:
    """What operations give back."""

    def __init__(self, keeping: Keeping) -> None:
        self.keeping = keeping
        self.graph = keeping.graph
        self.here = keeping.here
        self.grad_mode = keeping.grad_mode
        self.trail = keeping.graph.trail

    def results_of(self, node: Node, effect: Effect, bound: Bound, kept: list[str]) -> Value:
        source = bound.get(effect.args[0]) if effect.args else None
        if isinstance(source, Seq) and source.items:
            source = source.items[0]
        if effect.results == 1:
            return self.result(node, effect, bound, source, 0, "result" in kept)
        count = effect.results or pieces.count(node.op, bound)
        count = count if count <= MANY else 0
        items: list[Value] = []
        for i in range(count or 2):
            one = {**bound, "which": Const(i)}
            items.append(self.result(node, effect, one, source, i, f"result{i}" in kept or "result" in kept))
        return Seq("tuple", items, open=not count)

    def itself(self, op: str, effect: Effect, bound: Bound) -> Tensor | None:
        """The tensor that an operation hands back as it is: nothing is recorded then, nor looked at."""
        source = bound.get(effect.args[0]) if effect.args else None
        if not isinstance(source, Tensor):
            return None
        return (
            source if effect.returns_self == "always" or self._is_itself(op, source, effect, bound) else None
        )

    def _is_itself(self, op: str, source: Tensor, effect: Effect, bound: Bound) -> bool:
        """Whether an operation has nothing to do, and gives back what it was given."""
        if op == "flatten" and source.shape:
            flat = self.shape(op, effect, bound, source)
            return flat is not None and len(flat) == len(source.shape)
        if op in AT_LEAST and source in bound.values():
            return source.shape is not None and len(source.shape) >= int(AT_LEAST[op])
        if op == "sum_to_size":
            return source.shape is not None and self.shape(op, effect, bound, source) == source.shape
        return op == "contiguous" and source.layout is True and "memory_format" not in bound

    def result(
        self, node: Node, effect: Effect, bound: Bound, source: Value | None, i: int, kept: bool
    ) -> Tensor:
        """One output tensor."""
        made = node
        if effect.constant and (-1 in effect.constant or i in effect.constant):
            made = Node(node.op, node.place, node.parents, False)
            made.cut, made.cut_place, made.path, made.lean = "constant", node.place, node.path, node.lean
        tensor = self.output(made)
        tensor.shape = self.shape(node.op, effect, bound, source)
        if node.op in CHOOSING and tensor.shape is not None:
            made.facts = {**(made.facts or {}), "rank": len(tensor.shape), "width": _last_of(source)}
        if node.op in LOSSES and isinstance(how := bound.get("reduction"), Const) and how.value == "none":
            made.facts = {**(made.facts or {}), "unreduced": True}
        if tensor.shape is None and effect.shape == "elementwise":
            if any(map(_several, bound.values())):
                made.facts = {**(made.facts or {}), "several": True}
            elif any(map(_unreduced, bound.values())):
                made.facts = {**(made.facts or {}), "unreduced": True}
        if node.op in SUMS and (wider := _wider(node.place, effect, bound)) is not None:
            made.facts = {**(made.facts or {}), "wider": wider}
        tensor.dtype = self.dtype(node.op, effect, bound, made.cut == "constant")
        tensor.layout = layouts.of_result(node.op, bound, _operands(bound), tensor.shape)
        if tensor.layout is None and node.op in strides.POINTWISE:
            strides.looks(tensor, strides.of_pointwise(bound, tensor.shape))
        if isinstance(source, Tensor):
            self._look(tensor, source, effect, bound)
            if tensor.view == "many" and source.piece is None and not shows_twice(source):
                tensor.piece = node, i
        if kept:
            self.keeping.save(made, tensor, NOTHING)
        return tensor

    def output(self, node: Node) -> Tensor:
        """A tensor of its own memory that a node made."""
        leaf = None if node.requires is None else not node.requires
        tensor = Tensor(node, Storage(), node.requires, leaf)
        tensor.layout = True
        if self.grad_mode.inference is True:
            tensor.storage.inference = self.grad_mode.grad_off[1]
        return tensor

    def _look(self, tensor: Tensor, source: Tensor, effect: Effect, bound: Bound) -> None:
        """Let a result share its source's memory as far as that is known."""
        op, view = tensor.node.op, effect.view
        steps = strides.of_view(op, source, bound, tensor.shape) if view else None
        if view == "maybe" and op in COPYING:
            flat = op != "ravel" and source.shape is not None and len(source.shape) == 1
            if flat or source.layout is True or steps is not None:
                view = "always"
            elif strides.of(source) is not None and strides.known(tensor.shape) is not None:
                tensor.layout = True  # no view has these sizes: it is a copy
                return
        if op == "contiguous" and source.layout is False:
            return
        if view == "maybe" or (not view and effect.returns_self == "maybe"):
            self.may_be(tensor, source)
        if view in ("always", "many"):
            self.look(tensor, source, "many" if view == "many" else "plain")
            tensor.layout = (op in strides.RESHAPED and source.layout) or None
            strides.looks(tensor, steps)
            if op in CUTTING and source.base is None and (dim := pieces.dim_of(bound, "dim", 0)) is not None:
                tensor.node.facts = {**(tensor.node.facts or {}), "along": dim, "whole": source}
            if op in REPEATED and strides.repeated(source.shape, tensor.shape):
                tensor.node.facts = {**(tensor.node.facts or {}), "repeats": tensor.shape}

    def may_be(self, tensor: Tensor, source: Tensor) -> None:
        """Note that a result may be, or show, what it was made from: without recording too it may keep a
        history."""
        tensor.maybe = source
        if source.storage.inference is None:
            tensor.storage.inference = None  # made in inference mode only if it is a copy
        if self.grad_mode.grad is False and tensor.requires is False and source.requires is not False:
            tensor.node.requires = tensor.requires = tensor.leaf = None
            tensor.node.cut, tensor.node.may = "", True

    def look(self, tensor: Tensor, source: Tensor, view: str) -> None:
        """Make a tensor a view of another's memory."""
        tensor.storage = source.storage
        tensor.data_of, tensor.counter = source.data_of, source.counter
        tensor.seen = len(tensor.storage.writes)
        if view == "loose":
            tensor.view = "loose"
            return
        tensor.base = source.base if source.base is not None and source.view != "loose" else source
        tensor.piece = source.piece
        tensor.view = view if view == "many" or source.view in ("", "loose") else source.view
        if self.grad_mode.grad is False and not (
            self.grad_mode.inference is True and tensor.base.requires is False
        ):
            tensor.view = "no_grad"
        if self.grad_mode.grad is False:
            self._unrecorded_view(tensor, self.graph.requires(tensor.base))
        tensor.generation = tensor.storage.generation
        if tensor.leaf is True and tensor.base.requires is not False:
            tensor.leaf = None

    def _unrecorded_view(self, tensor: Tensor, requires: Truth) -> None:
        """A view made without recording requires grad if its base does: backward takes it, and leads
        nowhere."""
        if requires is None:
            tensor.node.requires = tensor.requires = tensor.leaf = None
            tensor.node.cut, tensor.node.may = "", True
        if not requires:
            return
        node = Node("leaf", tensor.place, tensor.node.parents, True)
        node.cut, node.cut_place = self.grad_mode.grad_off[0] or "no_grad", self.grad_mode.grad_off[1]
        node.path, node.lean, node.leaf = self.here.path, self.graph.lean(tensor.base or tensor), tensor
        tensor.node, tensor.requires, tensor.leaf = node, True, True

    def shape(self, op: str, effect: Effect, bound: Bound, source: Value | None) -> Shape:
        """The shape of a result, where it is easily known."""
        own = source.shape if isinstance(source, Tensor) else None
        if op in LOSSES:
            return contractions.of_loss(op, own, bound)
        if op in PRODUCTS:
            return PRODUCTS[op](own, bound)
        if effect.shape == "reduction" or op in REDUCTIONS:
            return contractions.reduced(op, own, bound)
        if op in JOINS:
            return JOINS[op](bound)
        if op in SIZED:
            return pieces.sized((), bound)
        if own is not None and op in SHAPES:
            return SHAPES[op](own, bound)
        if effect.shape == "elementwise":
            operands = [v for v in bound.values() if isinstance(v, (Tensor, Unknown))]
            return shapes.broadcast([v.shape if isinstance(v, Tensor) else None for v in operands])
        if op in AS_OTHER:
            return contractions.first_of(bound, "other")
        return own if op in ALIKE else None

    def reshape(self, target: Tensor, op: str, effect: Effect, bound: Bound) -> None:
        """Let a tensor have the shape that an operation in place gives it."""
        self.trail.set(target, "shape", self.shape(op.removesuffix("_"), effect, bound, target))
        self.trail.set(target, "layout", None)
        self.trail.set(target, "strides", None)

    def resized(self, out: Tensor, node: Node, effect: Effect, bound: Bound) -> None:
        """Let what a result was put into have its sizes."""
        shape = self.shape(node.op, effect, bound, bound.get(effect.args[0]) if effect.args else None)
        if shape is not None and shape == out.shape:
            return
        self.trail.set(out, "shape", shape)
        if out.base is not None:
            self.other_memory(out)

    def other_memory(self, tensor: Tensor, like: Value | None = None) -> None:
        """Let a tensor lie in memory otherwise than it did: as another, or nobody knows how."""
        known = like if isinstance(like, Tensor) and like.maybe is None else None
        shape = None if known is None or known.shape is None else (*known.shape,)
        self.trail.set(tensor, "shape", shape)
        self.trail.set(tensor, "layout", known and known.layout)
        self.trail.set(tensor, "strides", known and known.strides)

    def dtype(self, op: str, effect: Effect, bound: Bound, constant: bool) -> str:
        """The dtype class of a result."""
        given = [tensor.dtype for tensor in _operands(bound) if type(tensor) is Tensor]
        if constant:
            return _constant_dtype(op, effect, bound, given)
        return shapes.promoted([kind for kind in given if kind] if "float" in given else given)


def shows_twice(source: Tensor) -> bool:
    """Whether a tensor may show an element of its memory in several places, as an expanded one does."""
    if source.maybe is not None:
        return True
    if source.base is None:
        return source.view != ""
    base = source.base.node
    way = upstream([source.node], lambda node: () if node is base else node.parents[:1])
    return any(node.op in REPEATING or node.may for node in way)


def _last_of(source: Value | None) -> int | None:
    """How many elements the last dimension of a tensor has."""
    return source.shape[-1] if isinstance(source, Tensor) and source.shape else None


def _several(operand: Value) -> bool:
    """Whether an operand has more than one element for sure: so has what it is broadcast to."""
    if not isinstance(operand, Tensor):
        return False
    facts = operand.node.facts
    return shapes.many(operand.shape) is True or bool(facts and facts.get("several"))


def _unreduced(operand: Value) -> bool:
    """Whether an operand is a loss that was told not to reduce, or made of one element by element."""
    return isinstance(operand, Tensor) and bool((operand.node.facts or {}).get("unreduced"))


def _wider(place: Place, effect: Effect, bound: Bound) -> Place:
    """The operand of a sum that has several elements, where the other one is a single number."""
    sides = [bound.get(name) for name in effect.args[:2]]
    if not isinstance(place, ast.BinOp) or not all(isinstance(side, Tensor) for side in sides):
        return None
    left, right = (side for side in sides if isinstance(side, Tensor))
    for wide, number, operand in ((left, right, place.left), (right, left, place.right)):
        if (
            (shapes.many(wide.shape) or _unreduced(wide))
            and shapes.many(number.shape) is False
            and _reduced(number.node)
        ):
            return operand
    return None


def _reduced(node: Node) -> bool:
    """Whether a number is what some loss came to: the sum or mean of what learns, or so many times it."""
    for _ in range(FEW):
        if node.op in LOSSES or node.op in REDUCTIONS:
            return node.requires is True
        learning = [one for one in node.parents if one.requires is True]
        if not learning or node.guards is not None:
            return False
        node = learning[0]
    return False


def _operands(bound: Bound) -> list[Value]:
    """The arguments that are tensors or may be, those in lists too."""
    found: list[Value] = []
    for value in bound.values():
        if type(value) is Tensor or type(value) is Unknown:
            found.append(value)
        elif type(value) is Seq:
            found.extend([one for one in value.items if isinstance(one, (Tensor, Unknown, Alt))])
    return found


def _constant_dtype(op: str, effect: Effect, bound: Bound, given: list[str]) -> str:
    """The dtype class of a result that carries no gradient: an index, a truth, or like what went in."""
    gives = told("gives").get(op)
    if gives == "truth":
        return "bool"
    if -1 not in effect.constant or gives == "index":
        return "int"
    if gives == "like":
        return given[0] if given and len(set(given)) == 1 and "dtype" not in bound else ""
    return ""
