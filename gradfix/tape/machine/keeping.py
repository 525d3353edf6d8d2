"""What operations keep for backward: of which inputs, on which paths, and where they keep a copy."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from gradfix.defects import NOTHING, Assumption, Role
from gradfix.defects.leaning import weight
from gradfix.defects.severed import Unrecorded
from gradfix.tape.domain.graph import Saved, Tensor
from gradfix.tape.domain.in_graph import on_path
from gradfix.tape.domain.paths import contradicts, implies
from gradfix.tape.domain.values import Const, Seq, Unknown
from gradfix.tape.effects.operations import having, layers_having, name_of_layer, where
from gradfix.tape.machine.cuts import leaves_behind
from gradfix.tape.machine.here import span_of

if TYPE_CHECKING:
    from gradfix.tape.domain.effect import Effect
    from gradfix.tape.domain.graph import Node
    from gradfix.tape.domain.values import Lean, Value
    from gradfix.tape.machine.histories import Graph
    from gradfix.tape.machine.reports import Draft

PERMUTED = having("permutes")
PIECES = PERMUTED | where("stride", "reordered", "same") | {"T", "H", "getitem"}
FLATTENING = having("folds") | {name_of_layer(kind) for kind in layers_having("folds")}
NORMS = having("normalises") | {name_of_layer(kind) for kind in layers_having("normalises")}
AVERAGES = having("averages")


class Keeping:
    """What the nodes of a graph keep for backward."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.here = graph.here
        self.reports = graph.reports
        self.grad_mode = graph.grad_mode
        self.runs_again = False
        """Whether backward runs what runs now once more (checkpointing), with the leaves as they are then: it
        raises nothing, whatever was written to them."""
        self.inferred: list[tuple[Draft[Unrecorded], list[Tensor]]] = []
        """What was made in inference mode and can't be saved: the end says whether it is a constant."""

    def save(self, node: Node, tensor: Tensor, lean: Lean) -> None:
        """Let a node keep a tensor at its present version."""
        if self.runs_again and tensor.leaf is True:
            return
        stored = tensor.storage
        if (
            stored.inference is not None
            and self.grad_mode.inference is False
            and not contradicts(self.here.path, stored.inferred)
            and (implies(self.here.path, stored.inferred) or implies(stored.inferred, self.here.path))
        ):
            sure = self.grad_mode.grad is True and self.grad_mode.mode_in_doubt is False
            draft = self.reports.draft(
                "forward_in_no_grad",
                stored.inference,
                [(tensor.place, Role.MADE_IN_INFERENCE), (node.place, Role.SAVED_FOR_BACKWARD)],
                Unrecorded(
                    form="with",
                    mode="inference_mode",
                    forward=tuple(span_of(p) for p in (tensor.place,) if isinstance(p, ast.AST)),
                ),
                lean=node.lean | lean | (NOTHING if sure else {Assumption.RECORDED_HERE}),
                when=self.here.path | stored.inferred,
                says="Inference tensors cannot be saved for backward",
            )
            if draft is not None:
                self.inferred.append((draft, leaves_behind(tensor.node)))
        tested = self.here.path - self.here.assumed if self.here.assumed else self.here.path
        paths = [self.here.path]
        if node.requires is None and not self.here.narrow:
            paths = [self.here.path | guard for guard in node.branch if on_path(node, self.here.path | guard)]
        if tensor.maybe is not None:
            tensor.maybe.storage.shown.append(self.here.path)
        for path in paths:
            tensor.storage.savers.append(Saved(tensor, node, path, tested, node.lean | lean))

    def keep(
        self, node: Node, effect: Effect, bound: Mapping[str, Value], skip: Iterable[str] = ()
    ) -> list[str]:
        """Save what an effect keeps of its inputs; returns the results that it keeps as well."""
        results: list[str] = []
        if node.requires is not True and not (self.here.narrow and on_path(node, self.here.path)):
            return self._keep_on_some_paths(node, effect, bound, skip) if node.branch else results
        if _is_mean(node.op, bound):
            return results
        node.saves = effect.once
        alone = sum(kind.startswith("tensor") for kind in effect.kinds) == 1
        for what, needed in effect.saves:
            lean = self._needed(needed, bound, alone)
            if lean is None:
                continue
            if what.startswith("result"):
                results.append(what)
            elif what not in skip:
                value = bound.get(what)
                for one in value.items if isinstance(value, Seq) else (value,):
                    if isinstance(one, Unknown) and one.tensor is not None:
                        one = one.tensor
                    if isinstance(one, Tensor) and not _copied(node.op, one, bound):
                        self.save(node, one, lean)
        return results

    def _keep_on_some_paths(
        self, node: Node, effect: Effect, bound: Mapping[str, Value], skip: Iterable[str]
    ) -> list[str]:
        """The same for what is in a graph in one arm of a branch only."""
        results: list[str] = []
        for guard in node.branch:
            if on_path(node, self.here.path | guard) and not contradicts(guard, self.here.path):
                with self.here.within(
                    path=self.here.path | guard, assumed=self.here.assumed | guard, narrow=True
                ):
                    results = self.keep(node, effect, bound, skip)
        return results

    def _needed(self, names: Iterable[str], bound: Mapping[str, Value], alone: bool) -> Lean | None:
        """What it leans on that one of these inputs requires grad; None where none surely does. Where there
        is only one, nobody asks whether its gradient goes anywhere."""
        best: Lean | None = None
        for name in names:
            value = bound.get(name)
            if (
                value is not None
                and self.graph.requires(value) is True
                and (alone or not _leads_nowhere(value))
            ):
                lean = self.graph.leaning((value,))
                if best is None or weight(lean) < weight(best):
                    best = lean
        return best


def _leads_nowhere(value: Value) -> bool:
    """Whether it is a view made without recording: its gradient isn't asked for."""
    return (
        isinstance(value, Tensor)
        and value.node.leaf is value
        and value.node.cut != ""
        and value.base is not None
    )


def _is_mean(op: str, bound: Mapping[str, Value]) -> bool:
    """Whether an adaptive pool may have one output, which torch computes as a mean that keeps nothing."""
    if op not in AVERAGES:
        return False
    size = bound.get("output_size")
    sizes = size.items if isinstance(size, Seq) else [size]
    return not any(isinstance(one, Const) and one.value not in (1, None) for one in sizes)


def _copied(op: str, tensor: Tensor, bound: Mapping[str, Value]) -> bool:
    """Whether an operation may work on, and keep, a contiguous copy of an input of this layout."""
    if tensor.layout is True or tensor.view in ("", "loose"):
        return False
    if op == "einsum":
        return True
    made, rank = tensor.node.op, None if tensor.shape is None else len(tensor.shape)
    if op in NORMS:
        return made in PIECES
    if op not in FLATTENING or (rank is not None and rank <= 2):
        return False
    other = bound.get("other", bound.get("tensor2"))
    if isinstance(other, Tensor) and not other.parameter and (other.shape is None or len(other.shape) > 2):
        return False
    return made in PERMUTED or (rank is not None and made == "getitem")
