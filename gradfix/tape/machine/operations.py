"""Running an operation of torch on the machine: its effect says what it saves, writes, views and returns."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from gradfix.defects import Assumption, Convention, Role
from gradfix.defects.reasons import What
from gradfix.defects.written import Written, WrittenLeaf, WrittenView
from gradfix.tape.domain.graph import Node, Tensor, upstream
from gradfix.tape.domain.paths import tested
from gradfix.tape.domain.values import NOTHING, Seq, Unknown
from gradfix.tape.domain.why import Why
from gradfix.tape.effects import shapes
from gradfix.tape.effects.geometry import SHAPES
from gradfix.tape.effects.operations import having, in_place, where
from gradfix.tape.machine.cuts import DIFFERENTIATED
from gradfix.tape.machine.grad_mode import UNSET
from gradfix.tape.machine.here import span_of
from gradfix.tape.machine.refused import RefusedWrites
from gradfix.tape.machine.relied_upon import writes

if TYPE_CHECKING:
    from gradfix.defects import Lean
    from gradfix.tape.domain.effect import Effect
    from gradfix.tape.domain.graph import Write
    from gradfix.tape.domain.values import Place, Value
    from gradfix.tape.effects.overloads import Bound
    from gradfix.tape.machine.python import Python
    from gradfix.tape.machine.recording import Recording
    from gradfix.tape.machine.reports import Draft
    from gradfix.tape.machine.results import Results

VIEW_OF_MANY = (
    "This view is the output of a function that returns multiple views. "
    "Such functions do not allow the output views to be modified inplace."
)
VIEW_WITHOUT_GRAD = "A view was created in no_grad mode and is being modified inplace with grad mode enabled."
VIEW_INFERRED = "A view was created in inference mode and is being modified inplace in normal mode."


def _promotes(target: Tensor, bound: Mapping[str, Value]) -> bool:
    """Whether the same operation out of place would have another dtype."""
    others = [v for v in bound.values() if isinstance(v, Tensor) and v is not target and v.shape != ()]
    return bool(target.dtype) and any(
        other.dtype and shapes.promoted([target.dtype, other.dtype]) != target.dtype for other in others
    )


def _factor(number: Node, place: Place) -> Node:
    """What `alpha=` is to a sum: it weighs one of the terms, and is none."""
    return Node("factor", place, (number,), False)


ANEW = in_place(having("overwrites"))
"""Writes that keep nothing of what was there."""
RESHAPED = in_place(frozenset(SHAPES) | where("shape", "sized"))
"""Those that change no element, but how many lie in which dimension."""


REPEATING = having("repeating")
"""Views that show one place of memory as several elements."""


class Operations:
    """Torch's operations: what they record, keep, write and give back."""

    def __init__(self, recording: Recording, results: Results, python: Python) -> None:
        self.recording = recording
        self.keeping = results.keeping
        self.results = results
        self.python = python
        self.refused_writes = RefusedWrites(recording.graph, python, self._written)
        self.graph = recording.graph
        self.here = recording.here
        self.reports = recording.graph.reports
        self.trail = recording.trail
        self.grad_mode = recording.grad_mode
        self.graph_writes: list[tuple[Write, Node]] = []
        """In-place operations on the graph."""
        self.leaf_writes: list[tuple[Draft[WrittenLeaf], Tensor, bool]] = []
        """Leaves that were written in place, with what the rewrite has to know of it."""

    def operate(self, op: str, effect: Effect, bound: Bound, place: Place, form: str = "method") -> Value:
        """Run one operation whose arguments are bound."""
        if (
            effect.kinds
            and effect.kinds[0] == "tensor"
            and isinstance(first := bound.get(effect.args[0]), Unknown)
        ):
            bound = {**bound, effect.args[0]: self.graph.tensor_of(first)}
        out = bound.get("out")
        inputs = [value for name, value in bound.items() if name not in ("out", "alpha")]
        if not effect.writes and out is None and (same := self.results.itself(op, effect, bound)) is not None:
            return same
        lists = _lists(effect, bound) if any(type(value) is Seq for value in inputs) else ()
        node = self.recording.node(op, place, inputs, lists)
        if (factor := bound.get("alpha")) is not None:
            node.parents = (*node.parents, *(_factor(one, place) for one in self.graph.given(factor)))
        if effect.writes:
            return self._in_place(node, effect, bound, place, form)
        if isinstance(out, Tensor):
            value = self._into(out, node, place)
            self.results.resized(out, node, effect, bound)
            return value
        kept = self.keeping.keep(node, effect, bound)
        return self.results.results_of(node, effect, bound, kept)

    def _into(self, out: Tensor, node: Node, place: Place) -> Value:
        self.describe(self.recording.write(out, place, "out"), out, place)
        if self.refused_writes.by_out(out, node, place):
            return out
        if node.requires is not False:
            self.reports.silence(place, "what is written to `out=` isn't recorded; no rule is about that")
        node.requires = False if node.requires is not None else None
        return out

    def _in_place(self, node: Node, effect: Effect, bound: Bound, place: Place, form: str) -> Value:
        target = bound.get(effect.writes[0])
        if isinstance(target, Unknown):
            target = self.graph.tensor_of(target)
        if not isinstance(target, Tensor):
            return Unknown(Why(What.COMPUTED, "writes what isn't known"), tuple(bound.values()))
        for extra in effect.writes[1:]:
            if isinstance(other := bound.get(extra), Tensor):
                self.describe(self.recording.write(other, place, form), other, place)
        constant = effect.constant == (-1,)
        kept: list[str] = []
        if node.requires is True and self.grad_mode.grad is True:
            kept = self.keeping.keep(node, effect, bound, skip=(effect.writes[0],))
        self.overwrite(target, node, place, form)
        if node.op in RESHAPED:
            self.results.reshape(target, node.op, effect, bound)
        write = target.storage.writes[-1]
        if write.written is not None and _promotes(target, bound):
            for seen in write.everywhere():
                seen.written = replace(write.written, promotes=True)
        if kept:
            self.keeping.save(node, target, NOTHING)
        if constant:
            node.requires = False
        return target

    def overwrite(self, target: Tensor, node: Node, place: Place, form: str) -> None:
        """Write `target` in place, with all that torch refuses, spoils and rebuilds."""
        node.writes = True
        if (target.node.facts or {}).get("unreduced"):
            node.facts = {**(node.facts or {}), "unreduced": True}
        refused = self.refused_writes.in_place(target, node, place, form) or (
            self.grad_mode.grad is True and self._refused(target, node, place, form)
        )
        write = self.recording.write(target, place, form)
        self.describe(write, target, place)
        if self.grad_mode.grad is False:
            writes(self.graph, target, node, place)
        if self.grad_mode.grad is not False and target.requires is None:
            self.reports.silence(place, "whether what is written is in a graph isn't known", target.node)
        if self.grad_mode.grad is None and target.requires is True:
            self.reports.silence(place, "whether what is written here is recorded isn't known")
        if not refused and (reason := self._no_rule(target)) is not None:
            self.reports.silence(place, reason)
        if node.requires is True and not refused and target.data_of is None:
            self.graph_writes.append((write, node))
        if (
            self.grad_mode.grad is False
            and node.op in ANEW
            and target.base is None
            and target.node.leaf is target
        ):
            self._made_anew(target)
        if refused and target.view == "no_grad":
            self.recording.anew(target, node)
        if (
            self.grad_mode.grad is False
            or refused
            or (self.recording.inferred and node.cut == "inference_mode")
        ):
            return
        if self.grad_mode.grad is None and (target.requires is True or node.requires is False):
            return  # in a graph it stays there, recorded or not
        if self.grad_mode.grad is None and _shows_a_leaf(target):
            return  # torch would have refused to record that
        if node.requires is not False or target.requires is not False:
            if self.grad_mode.grad is None:
                node.requires = None
            self.recording.rebase(target, node)

    def refuses(self, target: Tensor, inputs: list[Value], op: str, place: Place) -> bool:
        """Whether torch refuses that a method gives a tensor other memory: a leaf, or a view of one."""
        if self.grad_mode.grad is not True or target.data_of is not None:
            return False
        return self._refused(target, self.recording.node(op, place, inputs), place, "method")

    def _no_rule(self, target: Tensor) -> str | None:
        """What torch may refuse of a write though no gradient is at stake."""
        if target.storage.inference is not None and self.grad_mode.inference is False:
            return "what is written was made in inference mode; no rule is about that where nothing is saved"
        if target.view == "plain" and target.node.op in REPEATING:
            return "several elements of what is written lie in one place; no rule is about that"
        if (shown := target.maybe) is not None and (shown.view == "many" or shown.storage.savers):
            return "whether what is written shows other memory isn't known"
        if target.node.op == "module" and target.node.leaf is None:
            return "whether the module that made this keeps it isn't known"
        return None

    def _made_anew(self, leaf: Tensor) -> None:
        """A leaf whose every element was set is made of nothing that went before."""
        node = Node("leaf", leaf.place, (), leaf.requires)
        node.leaf, node.lean, node.path = leaf, leaf.lean, self.here.path
        self.trail.set(leaf, "node", node)

    def _refused(self, target: Tensor, node: Node, place: Place, form: str) -> bool:
        """Whether torch raises at once: a leaf, its view, or one of several views."""
        self.graph.history(target)
        if node.op.startswith("logical_"):
            return False  # torch doesn't look at what it overwrites with truths
        base = target.base if target.base is not None and target.view != "loose" else None
        if node.requires is not True and (base is None or self.graph.requires(base) is not True):
            return False  # a view made without grad refuses whatever would be recorded
        facts = self._written(target, place, form)
        if target.view in ("many", "no_grad") and target.base is not None:
            return self._refused_view(target, node, place, facts)
        if self.recording.late is target and node.requires is True:
            self._refused_leaf(target, target, node, facts, place)
            return True
        owner = target.base if target.base is not None and target.view == "plain" else target
        if owner.leaf is not True or True not in (self.graph.requires(target), self.graph.requires(owner)):
            return False
        self._refused_leaf(target, owner, node, facts, place)
        return True

    def _written(self, target: Tensor, place: Place, form: str) -> Written:
        """What a rewrite of a write that torch refuses has to know."""
        aliased, in_tuple = self.python.sees_write(target, place), self.python.in_tuple(place)
        return Written(form=form, target=self.target(place), aliased=aliased, in_tuple=in_tuple)

    def _refused_view(self, target: Tensor, node: Node, place: Place, facts: Written) -> bool:
        if self.grad_mode.mode_in_doubt is not False:
            return False
        if Convention.D in node.lean and target.storage.argument:
            return False  # rows of what came in: as often labels as features
        if _goes_on(place):
            return True
        maker = target.node.op if target.view == "many" else "no_grad"
        unrecorded = VIEW_INFERRED if target.node.cut == "inference_mode" else VIEW_WITHOUT_GRAD
        says = VIEW_OF_MANY if target.view == "many" else unrecorded
        unreadable = target.view == "no_grad" and target.seen < len(target.storage.writes)
        steps = [(target.place, Role.MADE), (place, Role.WRITTEN)]
        of_leaf = target.base is None or target.base.leaf is not False
        self.reports.report(
            "inplace_on_view_of_many",
            place,
            steps,
            WrittenView(**facts.named(), maker=maker, unreadable=unreadable, of_leaf=of_leaf),
            lean=node.lean | self._by_entry(),
            when=self.here.path,
            says=says,
        )
        return True

    def _by_entry(self) -> Lean:
        """What is recorded only as somebody has entered this with recording on."""
        entered = tested(self.here.path) != self.here.path
        return frozenset({Convention.G}) if entered and self.grad_mode.mode is UNSET else NOTHING

    def _refused_leaf(self, target: Tensor, owner: Tensor, node: Node, facts: Written, place: Place) -> None:
        says = "a leaf Variable that requires grad is being used in an in-place operation"
        if owner is not target:
            says = "a view of a leaf Variable that requires grad is being used in an in-place operation"
        if self.python.for_others(owner):
            return
        sure = self.grad_mode.mode_in_doubt is False and not (owner.parameter and self._chosen_elsewhere())
        sure = sure and not (owner is not target and _doubted(target.node, owner.born))
        lean = owner.lean if sure else owner.lean | {Assumption.RECORDED_HERE}
        lean = lean | self._by_entry()
        written = [parent for parent in node.parents if parent is not target.node]
        learned = any(one.op == DIFFERENTIATED for one in upstream(written)) or any(
            any(one.leaf not in (None, owner) for one in upstream([parent]))
            for parent in written
            if parent.requires is True
        )
        updated = not learned and (owner.parameter or owner.slot is not None)
        leaf = WrittenLeaf(**facts.named(), role="update" if updated else "value",
                           parameter=owner.parameter)  # fmt: skip
        steps = [(owner.place, Role.LEAF), (place, Role.WRITTEN)]
        draft = self.reports.draft(
            "inplace_on_leaf", place, steps, leaf, lean=lean, when=self.here.path, says=says
        )
        if draft is not None:  # an update that is itself differentiated stays a value
            self.leaf_writes.append((draft, owner, learned))

    def _chosen_elsewhere(self) -> bool:
        """Whether this is one way through what was entered by itself: who chooses it may have turned
        recording off, as one does who edits what was trained."""
        tests = tested(self.here.path)
        return bool(tests) and tests != self.here.path

    def harmless_writes(self) -> None:
        """At the end: in-place operations on the graph that overwrote nothing saved: a matter of style."""
        culprits = {span for _, span in self.reports.findings.found}
        for write, node in self.graph_writes:
            place = write.built or write.place
            if write.form in ("module", "step", "buffer") or not isinstance(place, ast.AST):
                continue
            copied = any(parent.op == "clone" for parent in node.parents[:1])
            if span_of(place) not in culprits and not copied:
                written = write.written or Written()
                self.reports.report(
                    "inplace_on_graph_tensor",
                    place,
                    [(node.parents[0].place, Role.MADE), (place, Role.WRITTEN)],
                    Written(form=write.form, target=written.target, aliased=written.aliased),
                    lean=node.lean,
                )

    def describe(self, write: Write, target: Tensor, place: Place) -> None:
        """Note what a rewrite of this write would have to know, where something was saved."""
        if target.storage.savers or write.parts or target.requires:
            write.leaf = _leaf_written(target)
            again = self.python.meets_again(target)
            write.written = Written(
                target=self.target(place),
                aliased=again or target.storage.argument or self.python.sees_write(target, place),
                met_again=again,
                in_tuple=self.python.in_tuple(place),
                unrecorded=self.keeping.grad_mode.grad is False and target.requires is not False,
            )
            for seen in write.everywhere():
                seen.leaf, seen.moment, seen.written = write.leaf, write.moment, write.written

    def target(self, place: Place) -> str:
        """The source text of what a statement or call writes."""
        node = self.python.written(place)
        return self.reports.text(node, self.reports.findings.main) if node is not None else ""


def _shows_a_leaf(target: Tensor) -> bool:
    """Whether a view is one of a leaf that requires grad."""
    base = target.base if target.view != "loose" else None
    return base is not None and base.leaf is True and base.requires is True


def _doubted(shown: Node, since: int) -> bool:
    """Whether something not known stood around the making of a view, or of those it was made of."""
    while shown.born > since:
        if shown.doubted:
            return True
        if not shown.parents:
            break
        shown = shown.parents[0]
    return False


def _leaf_written(target: Tensor) -> Tensor | None:
    """The leaf whose memory a write changes, where that is a parameter or requires grad."""
    if target.data_of is not None:
        return target.data_of if target.data_of.leaf is True else None
    while target.base is not None:
        target = target.base
    return target if target.leaf is True and (target.parameter or target.requires is True) else None


STATES = frozenset({"hx"})
"""What recurrent layers are given as one tensor or as a pair of them."""


def _lists(effect: Effect, bound: Bound) -> list[Value]:
    """The arguments that are lists of tensors, or may be."""
    kinds = zip(effect.args, effect.kinds, strict=False)
    return [bound[name] for name, kind in kinds if name in bound and (kind == "tensors" or name in STATES)]


def _goes_on(place: Place) -> bool:
    """Whether a call goes on with what one before it was refused to write: `x.mul_(2).add_(1)`."""
    function = place.func if isinstance(place, ast.Call) else None
    before = function.value if isinstance(function, ast.Attribute) else None
    name = before.func if isinstance(before, ast.Call) else None
    return isinstance(name, ast.Attribute) and name.attr.endswith("_") and not name.attr.startswith("_")
