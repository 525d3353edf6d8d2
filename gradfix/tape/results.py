"""What an operation gives back: new memory or a view, its shape and its dtype, as far as they are known."""

from __future__ import annotations

from gradfix.tape import geometry, shapes
from gradfix.tape.effects import Effect
from gradfix.tape.graph import Node, Storage, Tensor
from gradfix.tape.machine import Machine
from gradfix.tape.overloads import Bound
from gradfix.tape.values import NOTHING, Const, Seq, Shape, Unknown, Value

REDUCED_BY_NAME = frozenset(
    {
        "sum",
        "mean",
        "prod",
        "norm",
        "std",
        "var",
        "max",
        "min",
        "amax",
        "amin",
        "logsumexp",
        "nansum",
        "median",
    }
)
LOSSES = frozenset({
    "mse_loss", "l1_loss", "smooth_l1_loss", "cross_entropy", "nll_loss", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "kl_div", "huber_loss", "cosine_embedding_loss",
    "margin_ranking_loss", "triplet_margin_loss", "hinge_embedding_loss", "poisson_nll_loss",
    "gaussian_nll_loss", "soft_margin_loss", "ctc_loss", "multilabel_margin_loss",
    "multilabel_soft_margin_loss", "multi_margin_loss", "triplet_margin_with_distance_loss",
})  # fmt: skip


class Results(Machine):
    """The machine with the results of operations on it."""

    # -- results -------------------------------------------------------------------------------------------

    def _results(self, node: Node, effect: Effect, bound: Bound, kept: list[str]) -> Value:
        source = bound.get(effect.args[0]) if effect.args else None
        if isinstance(source, Seq) and source.items:
            source = source.items[0]
        if effect.returns_self == "always" and isinstance(source, Tensor):
            return source
        if node.op == "contiguous" and isinstance(source, Tensor) and source.layout is True:
            return source
        if effect.results == 1:
            return self.result(node, effect, bound, source, 0, "result" in kept)
        count = effect.results or self._count(node.op, bound)
        items: list[Value] = []
        for i in range(count or 2):
            items.append(
                self.result(node, effect, bound, source, i, f"result{i}" in kept or "result" in kept)
            )
        return Seq("tuple", items, open=not count)

    @staticmethod
    def _count(op: str, bound: Bound) -> int:
        chunks = bound.get("chunks")
        if isinstance(chunks, Const) and isinstance(chunks.value, int):
            return chunks.value
        parts = bound.get("split_size", bound.get("split_sizes"))
        if isinstance(parts, Seq) and not parts.open:
            return len(parts.items)
        source = bound.get("self", bound.get("tensor", bound.get("input")))
        dim = bound.get("dim", Const(0))
        if (
            isinstance(source, Tensor)
            and source.shape
            and isinstance(dim, Const)
            and isinstance(dim.value, int)
        ):
            size = source.shape[dim.value] if -len(source.shape) <= dim.value < len(source.shape) else None
            if size and op.startswith("unbind"):
                return size
            if size and isinstance(parts, Const) and isinstance(parts.value, int) and parts.value > 0:
                return -(-size // parts.value)
        return 0

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
        if node.op in LOSSES and isinstance(told := bound.get("reduction"), Const) and told.value == "none":
            made.facts = {**(made.facts or {}), "unreduced": True}
        tensor.dtype = self.dtype(node.op, effect, bound, made.cut == "constant")
        if isinstance(source, Tensor):
            self._look(tensor, source, effect)
            if node.op == "expand" and tensor.shape is not None and tensor.shape == source.shape:
                tensor.layout = source.layout
        if kept:
            self.save(made, tensor, NOTHING)
        return tensor

    def output(self, node: Node) -> Tensor:
        """A tensor of its own memory that a node made."""
        leaf = {True: False, False: True, None: None}[node.requires]
        tensor = Tensor(node, Storage(), node.requires, leaf)
        tensor.layout = True
        if self.inference:
            tensor.storage.inference = self.grad_off[1]
        return tensor

    def _look(self, tensor: Tensor, source: Tensor, effect: Effect) -> None:
        """Let a result share its source's memory as far as that is known."""
        view = effect.view
        flat = source.shape is not None and len(source.shape) == 1
        if flat and tensor.node.op in ("reshape", "flatten", "ravel"):
            view = "always"
        elif view == "maybe" or effect.returns_self == "maybe":
            if (
                effect.view == "maybe"
                and tensor.node.op in ("reshape", "flatten", "ravel", "reshape_as")
                and source.layout is True
            ):
                view = "always"
            else:
                tensor.layout = True if tensor.node.op in ("contiguous", "clone") else None
                return
        if view in ("always", "many"):
            self.look(tensor, source, "many" if view == "many" else "plain")
            keeps = tensor.node.op in (
                "view",
                "reshape",
                "flatten",
                "ravel",
                "unsqueeze",
                "squeeze",
                "unflatten",
                "view_as",
            )
            tensor.layout = source.layout if keeps else None

    def look(self, tensor: Tensor, source: Tensor, view: str) -> None:
        """Make a tensor a view of another's memory."""
        tensor.storage = source.storage
        tensor.data_of = source.data_of
        tensor.seen = len(tensor.storage.writes)
        if view == "loose":
            tensor.view = "loose"
            return
        tensor.base = source.base if source.base is not None and source.view != "loose" else source
        tensor.view = view if view == "many" or source.view in ("", "loose") else source.view
        if self.grad is False and not (self.inference and tensor.base.requires is False):
            tensor.view = "no_grad"
        if self.grad is False and tensor.base.requires is True:
            self._unrecorded_view(tensor)
        tensor.generation = tensor.storage.generation
        if tensor.leaf is True and tensor.base.requires is not False:
            tensor.leaf = None

    def _unrecorded_view(self, tensor: Tensor) -> None:
        """A view made without recording still requires grad: backward takes it, and leads nowhere."""
        node = Node("leaf", tensor.place, tensor.node.parents, True)
        node.cut, node.cut_place = self.grad_off[0] or "no_grad", self.grad_off[1]
        node.path, node.lean, node.leaf = self.path, self.lean(tensor.base or tensor), tensor
        tensor.node, tensor.requires, tensor.leaf = node, True, True
        tensor.storage.inference = None

    def shape(self, op: str, effect: Effect, bound: Bound, source: Value | None) -> Shape:
        """The shape of a result, where it is easily known."""
        own = source.shape if isinstance(source, Tensor) else None
        if op in LOSSES:
            reduction = bound.get("reduction")
            if reduction is None or (
                isinstance(reduction, Const) and reduction.value in ("mean", "sum", "batchmean")
            ):
                return ()
            if isinstance(reduction, Const) and reduction.value == "none":
                target = bound.get("target")
                aim = target.shape if isinstance(target, Tensor) else None
                if op in ("cross_entropy", "nll_loss"):
                    return own[:1] + own[2:] if own else aim
                return shapes.broadcast([own, aim])
            return None
        if effect.shape == "reduction" or op in REDUCED_BY_NAME:
            if op in ("max", "min") and isinstance(other := bound.get("other"), Tensor):
                return shapes.broadcast([own, other.shape])
            return shapes.reduced(own, bound)
        if op in ("view_as", "reshape_as", "expand_as") and isinstance(other := bound.get("other"), Tensor):
            return other.shape
        if op == "expand" and isinstance(wanted := bound.get("size"), (Seq, Const)):
            asked = shapes.sizes([wanted])
            return asked if asked and -1 not in asked else None
        if op == "diagonal" and own and len(own) == 2:
            return (None,)
        if op == "t" and own is not None:
            return own[::-1]
        if op in geometry.SHAPES and own is not None:
            return geometry.SHAPES[op](own, bound)
        if op in ("matmul", "mm", "dot", "mv", "bmm"):
            other = bound.get("other", bound.get("mat2", bound.get("tensor", bound.get("vec"))))
            return shapes.matmul(own, other.shape if isinstance(other, Tensor) else None)
        if op == "stack" and isinstance(given := bound.get("tensors"), Seq):
            return geometry.stacked(given, bound)
        if op in ("cat", "concat") and isinstance(given := bound.get("tensors"), Seq) and not given.open:
            dim = bound.get("dim", Const(0))
            if not isinstance(dim, Const) or not isinstance(dim.value, int):
                return None
            own_shapes = [item.shape if isinstance(item, Tensor) else None for item in given.items]
            return shapes.joined(own_shapes, dim.value)
        if op == "linear":
            weight = bound.get("weight")
            out = weight.shape[0] if isinstance(weight, Tensor) and weight.shape else None
            return (*own[:-1], out) if own else None
        if effect.shape == "elementwise":
            operands = [v for v in bound.values() if isinstance(v, (Tensor, Unknown))]
            return shapes.broadcast([v.shape if isinstance(v, Tensor) else None for v in operands])
        if op in ("view", "reshape"):
            wanted = bound.get("size", bound.get("shape"))
            asked = shapes.sizes([wanted]) if wanted is not None else None
            if asked and -1 in asked:
                size = _reordered(own)
                return tuple(None if one == -1 else one for one in asked) if size is None else size
            return asked
        if op in (
            "softmax",
            "log_softmax",
            "relu",
            "clone",
            "contiguous",
            "dropout",
            "detach",
        ) or op.endswith("_like"):
            return own
        if op in ("t", "transpose", "permute", "unsqueeze", "squeeze", "flatten", "ravel"):
            return _reordered(own)
        return None

    def dtype(self, op: str, effect: Effect, bound: Bound, constant: bool) -> str:
        """The dtype class of a result."""
        if constant:
            return "int" if op.startswith(("arg", "max", "min", "topk", "sort", "median")) else "bool"
        given = [v.dtype for v in bound.values() if isinstance(v, Tensor)]
        if op in ("softmax", "log_softmax", "mse_loss", "sigmoid", "exp", "mean"):
            return shapes.promoted(given) or ("float" if "float" in given else "")
        return shapes.promoted([kind for kind in given if kind] if "float" in given else given)


def _reordered(shape: Shape) -> Shape:
    """A shape whose order isn't followed: only whether there is more than one element."""
    size = shapes.many(shape)
    return None if size is None else ((None, 2) if size else (1,))
