"""Running an operation of torch on the machine: its effect says what it saves, writes, views and returns."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from gradfix.tape import geometry, shapes
from gradfix.tape.defects import Fact
from gradfix.tape.effects import Effect
from gradfix.tape.machine import Machine, either, plain_number, span_of
from gradfix.tape.values import (
    NOTHING,
    Const,
    Node,
    Number,
    Place,
    Seq,
    Shape,
    Storage,
    Tensor,
    Unknown,
    Value,
    Write,
)

Bound = dict[str, Value]

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
VIEW_OF_MANY = (
    "This view is the output of a function that returns multiple views. "
    "Such functions do not allow the output views to be modified inplace."
)


def _promotes(target: Tensor, bound: Mapping[str, Value]) -> bool:
    """Whether the same operation out of place would have another dtype."""
    others = [v for v in bound.values() if isinstance(v, Tensor) and v is not target and v.shape != ()]
    return bool(target.dtype) and any(
        other.dtype and shapes.promoted([target.dtype, other.dtype]) != target.dtype for other in others
    )


def bind(effect: Effect, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Bound | None:
    """Arguments by name; None where the overload doesn't take them."""
    names = effect.args
    places = len(names) - effect.keyword
    if len(args) > places:
        # sizes and dims may be spread: x.permute(0, 1), x.view(2, 3)
        spread = args[places - 1 :]
        sizes = places > 0 and effect.kinds[places - 1] == "other"
        if not sizes or any(isinstance(arg, Tensor) for arg in spread):
            return None
        args = [*args[: places - 1], Seq("tuple", list(spread))]
    bound = dict(zip(names, args, strict=False))
    for name, value in kwargs.items():
        if name in ("axis",) and "dim" in names:
            name = "dim"
        if name == "keepdims":
            name = "keepdim"
        if name not in names and name not in ("out", "dtype", "device", "layout", "memory_format"):
            return None
        bound[name] = value
    return (
        bound
        if all(_fits(kind, bound.get(name)) for name, kind in zip(names, effect.kinds, strict=False))
        else None
    )


def _fits(kind: str, value: Value | None) -> bool:
    if value is None or isinstance(value, Unknown):
        return True
    if kind == "tensor":
        return isinstance(value, (Tensor, Number, Const)) and not (
            isinstance(value, Const) and isinstance(value.value, str)
        )
    if kind == "tensors":
        return isinstance(value, (Seq, Tensor))
    if kind == "number":
        return plain_number(value) or (isinstance(value, Const) and value.value is None)
    return not isinstance(value, Tensor)


def choose(
    effects: Sequence[Effect], args: Sequence[Value], kwargs: Mapping[str, Value]
) -> tuple[Effect, Bound] | None:
    """The overload that a call means; where unknown arguments leave several, what all of them agree on."""
    fitting = [(effect, bound) for effect in effects if (bound := bind(effect, args, kwargs)) is not None]
    fitting = [pair for pair in fitting if _holds(pair[0], pair[1])]
    if fitting and all(
        effect.when and not any(flag in bound for flag, _ in effect.when) for effect, bound in fitting
    ):
        return fitting[0]  # the flag isn't given, and the row of its default comes first
    if len(fitting) <= 1:
        return fitting[0] if fitting else None
    if not any(isinstance(value, Unknown) for _, bound in fitting for value in bound.values()):
        fitting.sort(key=lambda pair: _distance(*pair))
        if not fitting[0][0].when:
            return fitting[0]
        fitting = [pair for pair in fitting if pair[0].when]
    return _agreed([effect for effect, _ in fitting]), fitting[0][1]


def _holds(effect: Effect, bound: Bound) -> bool:
    for flag, wanted in effect.when:
        value = bound.get(flag)
        if isinstance(value, Const) and bool(value.value) is not wanted:
            return False
    return True


def _distance(effect: Effect, bound: Bound) -> int:
    wrapped = sum(
        1
        for name, kind in zip(effect.args, effect.kinds, strict=False)
        if kind == "tensor" and name in bound and plain_number(bound[name])
    )
    return wrapped * 100 + len(effect.args)


def _agreed(effects: Sequence[Effect]) -> Effect:
    first = effects[0]
    saves = tuple(save for save in first.saves if all(save in effect.saves for effect in effects))
    views = {effect.view for effect in effects}
    selves = {effect.returns_self for effect in effects}
    return replace(
        first,
        saves=saves,
        view=first.view if len(views) == 1 else "maybe",
        returns_self=first.returns_self if len(selves) == 1 else "maybe",
        writes=tuple(name for name in first.writes if all(name in effect.writes for effect in effects)),
    )


class Operations(Machine):
    """The machine with torch's operations on it."""

    sources: dict[str, Sequence[bytes]]
    """The lines of each file that was read."""
    sees_write: Callable[[Tensor, Place], bool]
    """Whether another live name would see a write to a tensor's memory; the interpreter knows the names."""

    def operate(self, op: str, effect: Effect, bound: Bound, place: Place, form: str = "method") -> Value:
        """Run one operation whose arguments are bound."""
        if (
            effect.kinds
            and effect.kinds[0] == "tensor"
            and isinstance(first := bound.get(effect.args[0]), Unknown)
        ):
            bound = {**bound, effect.args[0]: self.tensor_of(first)}
        inputs = [value for name, value in bound.items() if self._enters(name, effect)]
        node = self.node(op, place, inputs)
        out = bound.get("out")
        if effect.writes:
            return self._in_place(node, effect, bound, place, form)
        if isinstance(out, Tensor):
            return self._into(out, node, place)
        kept = self.keep(node, effect, bound)
        return self._results(node, effect, bound, kept)

    @staticmethod
    def _enters(name: str, effect: Effect) -> bool:
        return name != "out"

    def _into(self, out: Tensor, node: Node, place: Place) -> Value:
        self.describe(self.write(out, place, "out"), out, place)
        node.requires = False if node.requires is not None else None
        return out

    def _in_place(self, node: Node, effect: Effect, bound: Bound, place: Place, form: str) -> Value:
        target = bound.get(effect.writes[0])
        if isinstance(target, Unknown):
            target = self.tensor_of(target)
        if not isinstance(target, Tensor):
            return Unknown("writes what isn't known", tuple(bound.values()))
        for extra in effect.writes[1:]:
            if isinstance(other := bound.get(extra), Tensor):
                self.describe(self.write(other, place, form), other, place)
        constant = effect.constant == (-1,)
        kept: list[str] = []
        if node.requires is True and self.grad is True:
            kept = self.keep(node, effect, bound, skip=(effect.writes[0],))
        self.overwrite(target, node, place, form, silent=target.data_of is not None)
        if target.storage.writes[-1].facts and _promotes(target, bound):
            target.storage.writes[-1].facts["promotes"] = True
        if kept:
            self.save(node, target, NOTHING)
        if constant:
            node.requires = False
        return target

    def overwrite(self, target: Tensor, node: Node, place: Place, form: str, silent: bool = False) -> None:
        """Write `target` in place, with all that torch refuses, spoils and rebuilds."""
        refused = self.grad is True and self._refused(target, node, place, form)
        write = self.write(target, place, form, silent)
        self.describe(write, target, place)
        if node.requires is True and not refused and not silent:
            self.graph_writes.append((write, node))
        if self.grad is False or refused or (self.grad is None and node.requires is not True):
            return
        if node.requires is not False or target.requires is not False:
            if self.grad is None:
                node.requires = None
            self.rebase(target, node)

    def _refused(self, target: Tensor, node: Node, place: Place, form: str) -> bool:
        """Whether torch raises at once: a leaf, its view, or one of several views."""
        self.history(target)
        base = target.base if target.base is not None and target.view in ("plain", "no_grad") else None
        if node.requires is not True and (base is None or base.requires is not True):
            return False  # a view made without grad refuses whatever would be recorded
        facts: dict[str, Fact] = {
            "form": form,
            "target": self.target(place),
            "aliased": self.sees_write(target, place),
        }
        made = (target.place, "made here")
        here = (place, "written in place here")
        if target.view in ("many", "no_grad") and target.base is not None:
            if "D" in node.lean and target.storage.argument:
                return False  # rows of what came in: as often labels as features
            maker = target.node.op if target.view == "many" else "no_grad"
            says = VIEW_OF_MANY
            if target.view == "no_grad":
                says = (
                    "A view was created in no_grad mode and is being modified inplace with grad mode enabled."
                )
            self.report("inplace_on_view_of_many", place, [made, here], lean=node.lean, when=self.path,
                        says=says, facts={**facts, "maker": maker})  # fmt: skip
            return True
        owner = target.base if target.base is not None and target.view == "plain" else target
        if owner.leaf is True and owner.requires is True:
            says = "a leaf Variable that requires grad is being used in an in-place operation"
            if owner is not target:
                says = "a view of a leaf Variable that requires grad is being used in an in-place operation"
            facts["role"] = "update" if owner.parameter or owner.slot is not None else "value"
            self.report("inplace_on_leaf", place, [(owner.place, "a leaf that requires grad"), here],
                        lean=owner.lean, when=self.path, says=says, facts=facts)  # fmt: skip
            learned = any(parent.requires is True for parent in node.parents if parent is not target.node)
            if learned:  # an update that is itself differentiated
                facts["role"] = "value"
            else:
                self.watched_leaves.append((owner, facts))
            return True
        return False

    graph_writes: list[tuple[Write, Node]]

    def harmless_writes(self) -> None:
        """At the end: in-place operations on the graph that overwrote nothing saved: a matter of style."""
        culprits = {span for _, span in self.found}
        for write, node in self.graph_writes:
            place = write.facts.get("built", write.place)
            if write.form in ("module", "step", "buffer") or not isinstance(place, ast.AST):
                continue
            copied = any(parent.op == "clone" for parent in node.parents[:1])
            if span_of(place) not in culprits and not copied:
                facts = {name: fact for name, fact in write.facts.items() if name in ("target", "aliased")}
                self.report(
                    "inplace_on_graph_tensor",
                    place,
                    [(node.parents[0].place, "made here"), (place, "written in place here")],
                    impact="style",
                    lean=node.lean,
                    facts={"form": write.form, "aliased": False, **facts},
                )

    watched_leaves: list[tuple[Tensor, dict[str, Fact]]]

    def describe(self, write: Write, target: Tensor, place: Place) -> None:
        """Note what a rewrite of this write would have to know, where something was saved."""
        if target.storage.savers or target.requires:
            write.facts = {
                "target": self.target(place),
                "aliased": target.storage.argument or self.sees_write(target, place),
                "in_graph": target.requires is True,
                "parameter": target.data_of is not None and target.data_of.leaf is True,
            }

    def target(self, place: Place) -> str:
        """The source text of what a statement or call writes."""
        node = self.written(place)
        return self.text(node, self.main) if node is not None else ""

    def written(self, place: Place) -> ast.expr | None:
        """The expression of the analysed file that a statement or call writes."""
        raise NotImplementedError

    def text(self, node: ast.AST, file: str = "") -> str:
        """The source text of a node of the running file, on one line."""
        first, last = node.lineno - 1, node.end_lineno - 1  # type: ignore[attr-defined]
        lines = list(self.sources[file or self.file][first : last + 1])
        if not lines:
            return ast.unparse(node)
        lines[-1] = lines[-1][: node.end_col_offset]  # type: ignore[attr-defined]
        lines[0] = lines[0][node.col_offset :]  # type: ignore[attr-defined]
        return " ".join(line.strip().decode("utf-8", "replace") for line in lines)

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


__all__ = ["Operations", "bind", "choose", "either"]
