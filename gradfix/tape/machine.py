"""The simulated autograd: operations make nodes that save storages, writes spoil them, cuts end gradients.

Nothing here knows Python: the interpreter says which operation ran on which tensors, and the machine keeps
the graph as torch would, on every path at once. Facts are three-valued; only a True one may lead to a defect.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gradfix.tape.defects import Certainty, Defect, Evidence, Fact, Impact, Span
from gradfix.tape.effects import Effect
from gradfix.tape.events import on_path, partings
from gradfix.tape.graph import Node, Number, Saved, Spoil, Storage, Tensor, Write
from gradfix.tape.paths import ALWAYS, Equals, Path, contradicts, implies
from gradfix.tape.trail import Trail, phi
from gradfix.tape.values import NOTHING, Alt, Const, Foreign, Lean, Place, Seq, Truth, Unknown, Value

NUMBER_TYPES = (bool, int, float, complex)
PERMUTED = frozenset({"transpose", "permute", "movedim", "moveaxis", "swapaxes", "swapdims", "mT", "adjoint"})
PIECES = PERMUTED | {"t", "T", "H", "getitem", "narrow", "select", "chunk", "split", "unbind", "tensor_split"}
FLATTENING = frozenset({"linear", "einsum", "matmul", "__matmul__"})
HERE = "backward runs here"
NORMS = ("batch_norm", "instance_norm", "group_norm")


def span_of(node: ast.AST) -> Span:
    """The span of an `ast` node."""
    return Span(node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]


CARRYING = frozenset({Tensor, Number, Unknown, Seq, Alt})
"""What can have a history, or hold what has one."""


class Machine:
    """The state of the simulated autograd of one file, and the defects found so far."""

    born = 0

    def __init__(self, file: str) -> None:
        self.main = file
        self.file = file
        self.trail = Trail()
        self.path: Path = ALWAYS
        self.grad: Truth = True
        self.grad_off: tuple[str, Place] = ("", None)
        """What turned recording off: the mode's name and the with statement, decorator or call."""
        self.inference = False
        self.assumed: Path = ALWAYS
        """The part of the path that no statement tests: which alternative of a value is looked at."""
        self.here: Place = None
        """The operation that is being recorded."""
        self.repeat = False
        """Whether this is a later turn of a loop that isn't known to have one (convention E)."""
        self.inferred = False
        """Whether a tensor that requires grad was given the data of an inference tensor."""
        self.narrow = False
        """Whether a write is looked at once for each path on which what it writes may be in a graph."""
        self.ran: list[tuple[int, int]] = []
        """The functions that the module itself has run, while others are entered: their lines ran without
        this defect, and it takes convention G that somebody runs them otherwise."""
        self.spoils = 0
        self.frees = 0
        self.graph_tests: set[Any] = set()
        """Path conditions that say that something is in a graph."""
        self.about: dict[Any, list[Storage]] = {}
        """The memory that a path condition is a test of."""
        self.stopped: list[Path] = []
        """Where a backward raised: what a step lacks afterwards is that backward's doing."""
        self.texts: dict[Any, str] = {}
        self.found: dict[tuple[str, Span], Defect] = {}
        self.silences: dict[tuple[Span, str], None] = {}

    # -- places and reports --------------------------------------------------------------------------------

    def at(self, node: ast.AST) -> Place:
        """The place of a node of the file that is being executed."""
        return node if self.file == self.main else Foreign(node, self.file)

    def evidence(self, steps: Iterable[tuple[Place, str]]) -> tuple[Evidence, ...]:
        """The steps whose place is known, each once."""
        seen: dict[tuple[Span, str, str | None], None] = {}
        for place, role in steps:
            if role == HERE and isinstance(place, ast.Return):
                role = "backward starts from what is returned here"
            if isinstance(place, Foreign):
                seen[span_of(place.node), role, place.path] = None
            elif place is not None:
                seen[span_of(place), role, None] = None
        return tuple(Evidence(span, role, path) for span, role, path in seen)

    def report(
        self,
        kind: str,
        culprit: Place,
        steps: Sequence[tuple[Place, str]],
        *,
        impact: Impact = "crashes",
        lean: Lean = NOTHING,
        likely: bool = False,
        when: Path = ALWAYS,
        says: str = "",
        facts: Mapping[str, Fact] | None = None,
    ) -> None:
        """Note a defect, unless its culprit is in another file, where it will be found."""
        if culprit is None or isinstance(culprit, Foreign):
            return
        span = span_of(culprit)
        if self.repeat:
            lean = lean | {"E"}
        if any(first <= span.line <= last for first, last in self.ran):
            lean = lean | {"G"}
        certainty: Certainty = "likely" if lean or likely else "certain"
        known = self.found.get((kind, span))
        if known is not None and (known.certainty == "certain" or certainty == "likely"):
            self.found[kind, span] = also_runs(known, self.evidence(steps))
            return
        self.found[kind, span] = Defect(
            kind=kind,
            culprit=span,
            evidence=self.evidence(steps),
            certainty=certainty,
            impact=impact,
            conventions=tuple(sorted(lean)),
            condition=self.wording(when),
            torch_says=says,
            facts=dict(facts or {}),
        )

    def silence(self, place: Place, reason: str) -> None:
        """Note why nothing is said about a place."""
        if place is not None and not isinstance(place, Foreign):
            self.silences[span_of(place), reason] = None

    def wording(self, path: Path) -> str:
        """A path condition as source text."""
        words = []
        for key, holds in path:
            if isinstance(key, Equals):
                text = f"{self.texts.get(key.subject, '?')} {'==' if holds else '!='} {key.constant!r}"
            else:
                text = self.texts.get(key, "")
                text = text if holds or not text else f"not {text}"
            if text and "?" not in text:
                words.append(text)
        return " and ".join(sorted(words))

    # -- tensors -------------------------------------------------------------------------------------------

    def history(self, tensor: Tensor) -> Node:
        """The node that made a tensor's present value; a view follows what was written to its base."""
        base = tensor.base
        if base is None or tensor.generation >= tensor.storage.generation or tensor.view == "loose":
            return tensor.node
        above = self.history(base)
        node = Node("view", tensor.place, (above,), above.requires)
        node.lean = above.lean
        self.trail.set(tensor, "node", node)
        self.trail.set(tensor, "generation", tensor.storage.generation)
        self.trail.set(tensor, "requires", base.requires)
        return node

    def stale_view(self, tensor: Tensor) -> None:
        """One of several views is used after the memory below was written: torch won't rebuild its
        history."""
        write = tensor.storage.writes[tensor.seen]
        base = tensor.base
        if (
            base is None
            or base.requires is not True
            or self.grad is not True
            or write.silent
            or write.form == "step"
        ):
            return
        if write.place is tensor.place or not implies(self.path, write.path):
            return
        if "D" in base.lean and tensor.storage.argument:
            return
        facts = {name: fact for name, fact in write.facts.items() if name in ("target", "aliased")}
        self.report(
            "inplace_on_view_of_many",
            write.place,
            [(tensor.place, "made here"), (write.place, "written in place here"), (self.here, "used here")],
            lean=base.lean,
            when=write.path,
            says="is a view and its base or another view of its base has been modified inplace",
            facts={"form": write.form, "aliased": True, "target": "", **facts, "maker": tensor.node.op},
        )

    def requires(self, value: Value) -> Truth:
        """Whether a value is in a graph."""
        if isinstance(value, Tensor):
            if value.base is not None:
                self.history(value)
                if value.requires is not True and value.view != "loose" and value.base.requires is True:
                    return True  # it says so even if nothing goes through it
            if value.requires is None and (self.narrow or value.node.guards is not None):
                return on_path(value.node, self.path)
            if value.view == "no_grad" and value.node.leaf is value and value.base is not None:
                return value.base.requires
            return value.requires
        if isinstance(value, Unknown):
            return value.tensor.requires if value.tensor is not None else value.requires
        if isinstance(value, Seq):
            return either(self.requires(item) for item in value.items)
        if isinstance(value, Alt):
            facts = {self.requires(option) for _, option in value.options}
            return facts.pop() if len(facts) == 1 else None
        return False

    def leaf(self, place: Place, requires: Truth, lean: Lean = NOTHING) -> Tensor:
        """A tensor that no operation made."""
        node = Node("leaf", place, (), requires)
        node.path = self.path
        node.lean = lean
        tensor = Tensor(node, Storage(), requires, leaf=True)
        node.leaf = tensor
        return tensor

    def tensor_of(self, value: Unknown) -> Tensor:
        """The tensor that an unknown value turns out to be when it is used as one."""
        if value.tensor is None:
            node = value.made or self._guess(value)
            value.tensor = Tensor(node, Storage(argument=True), value.requires, leaf=None)
        return value.tensor

    def _guess(self, value: Unknown) -> Node:
        parents = tuple([node for held in value.holds for node in self.nodes(held)])
        known = value.guess
        if known is not None and known.parents == parents and known.requires is value.requires:
            return known
        node = value.guess = Node("unknown", None, parents, value.requires)
        node.may = True
        node.lean = value.lean
        node.facts = {"value": value}
        return node

    def given(self, value: Value) -> list[Node]:
        """The nodes of an operand: what isn't known may be made of what it holds, or not."""
        if isinstance(value, Unknown) and value.bare is not True and self._own_node(value) is None:
            guess = self._guess(value)
            return [guess] if guess.parents else []
        if isinstance(value, Seq) and any(isinstance(item, Unknown) for item in value.items):
            items = [item for item in value.items if item is not value]
            carried = (self.given(i) if isinstance(i, Unknown) else self.nodes(i) for i in items)
            return [node for nodes in carried for node in nodes]
        return self.nodes(value)

    def nodes(self, value: Value) -> list[Node]:
        """The nodes that a value carries."""
        if type(value) not in CARRYING:
            return []
        if (own := self._own_node(value)) is not None:
            return [own]
        found: dict[int, Node] = {}
        seen: set[int] = set()
        stack = [value]
        while stack:
            value = stack.pop()
            if type(value) not in CARRYING:
                continue
            if (own := self._own_node(value)) is not None:
                found[id(own)] = own
            elif isinstance(value, Unknown) and value.bare is not True and id(value) not in seen:
                seen.add(id(value))
                if value.bare is None and stack:
                    found.update((id(node), node) for node in self._inside(value))
                else:
                    stack.extend(reversed(value.holds))
            elif isinstance(value, Seq) and id(value) not in seen:
                seen.add(id(value))
                stack.extend(reversed(value.items))
            elif isinstance(value, Alt):
                stack.extend(self._open(value, found))
        return list(found.values())

    def _inside(self, value: Unknown) -> list[Node]:
        """The nodes of what an unknown holds, gathered once and then kept as its own."""
        value.bare = True  # while it is gathered: what it holds may hold it in turn
        held = [node for inner in value.holds for node in self.nodes(inner)]
        value.bare = not held
        if len(held) > 1:
            value.made = Node("unknown", None, tuple(dict.fromkeys(held)), value.requires)
            value.made.may = True
            value.made.lean = value.lean
            return [value.made]
        return held

    def _own_node(self, value: Value) -> Node | None:
        """The one node of a value that has a history of its own."""
        if isinstance(value, Unknown):
            if value.tensor is not None or value.made is not None or value.requires is not None:
                return self.history(self.tensor_of(value))
        elif isinstance(value, Tensor):
            return self.history(value)
        elif isinstance(value, Number):
            return value.node
        return None

    def _open(self, value: Alt, found: dict[int, Node]) -> list[Value]:
        """Join the alternatives that have a history into one node; returns the others."""
        guarded: list[tuple[Path, Node]] = []
        others: list[Value] = []
        for path, option in value.options:
            own = self._own_node(option)
            if own is None and isinstance(option, Unknown) and option.bare is not True:
                bare, option.bare = option.bare, True  # what it holds may hold it in turn
                guess = self._guess(option)
                option.bare = bare
                own = guess if guess.parents else None
            guarded.extend([(path, own)] if own is not None else [])
            others.extend([option] if own is None else [])
        if guarded:
            joined = self._joined(value, guarded)
            found[id(joined)] = joined
        return others

    @staticmethod
    def _joined(value: Alt, guarded: list[tuple[Path, Node]]) -> Node:
        """The same node each time, as long as the alternatives have the same ones."""
        made_of = [(node, node.requires) for _, node in guarded]
        if value.joined is None or value.joined[0] != made_of:
            value.joined = made_of, phi(guarded)
        return value.joined[1]

    def cut(self, how: str, source: Value, place: Place, at: Place = None) -> Node:
        """A node whose way to `source` carries no gradient."""
        node = Node(how, place, tuple(self.given(source)), False)
        node.cut = how
        node.cut_place = at or place
        node.path = self.path
        node.lean = self.lean(source)
        return node

    def lean(self, value: Value) -> Lean:
        """What a value's requires-grad leans on."""
        if isinstance(value, (Tensor, Unknown, Number)):
            return value.node.lean if isinstance(value, Number) else value.lean
        return NOTHING

    # -- operations ----------------------------------------------------------------------------------------

    def node(self, op: str, place: Place, inputs: Sequence[Value]) -> Node:
        """A recorded operation on inputs, in the present grad mode."""
        self.here = place
        for value in inputs:
            if isinstance(value, Tensor) and value.view == "many" and len(value.storage.writes) > value.seen:
                self.stale_view(value)
        requires: Truth = False
        parents: list[Node] = []
        for value in inputs:
            if type(value) is Const:
                continue
            if requires is not True and (fact := self.requires(value)) is not False:
                requires = fact
            nodes = self.given(value)
            if not nodes and isinstance(value, Unknown) and value.requires is None:
                nodes = [self._guess(value)]  # it may be in a graph, whatever the others are
            parents.extend(nodes)
        lean = self._leaning(inputs) if requires else NOTHING
        node = Node(op, place, tuple(parents), requires)
        if self.inferred and requires and (entered := _passed_by(inputs)) is not None:
            node.requires, node.cut, node.cut_place = False, "inference_mode", entered
        elif self.grad is not True and requires is not False:
            if self.grad is False:
                node.requires = False
                node.cut, node.cut_place = self.grad_off[0] or "no_grad", self.grad_off[1]
            else:
                node.requires, node.cut_place = None, place
        elif requires is None:
            node.branch = next((guards for parent in parents if (guards := partings(parent))), ())
        node.path = self.path
        node.lean = lean
        return node

    def _leaning(self, inputs: Sequence[Value]) -> Lean:
        """The fewest conventions that make one of the inputs require grad."""
        best: Lean | None = None
        for value in inputs:
            for one in value.items if isinstance(value, Seq) else (value,):
                if self.requires(one) is True:
                    lean = self.lean(one)
                    if not lean:
                        return NOTHING
                    best = lean if best is None or len(lean) < len(best) else best
        return best or NOTHING

    def save(self, node: Node, tensor: Tensor, lean: Lean) -> None:
        """Let a node keep a tensor at its present version."""
        if tensor.storage.inference is not None and not self.inference:
            self.report(
                "forward_in_no_grad",
                tensor.storage.inference,
                [(tensor.place, "made in inference mode"), (node.place, "saved for backward here")],
                lean=node.lean | lean,
                when=self.path,
                says="Inference tensors cannot be saved for backward",
                facts={
                    "form": "with",
                    "mode": "inference_mode",
                    "forward": tuple(span_of(p) for p in (tensor.place,) if isinstance(p, ast.AST)),
                    "backward": None,
                },
            )
        tested = self.path - self.assumed if self.assumed else self.path
        paths = [self.path]
        if node.requires is None and not self.narrow:
            paths = [self.path | guard for guard in node.branch if on_path(node, self.path | guard)]
        for path in paths:
            tensor.storage.savers.append(Saved(tensor, node, path, tested, node.lean | lean))

    def keep(
        self, node: Node, effect: Effect, bound: Mapping[str, Value], skip: Iterable[str] = ()
    ) -> list[str]:
        """Save what an effect keeps of its inputs; returns the results that it keeps as well."""
        results: list[str] = []
        if node.requires is not True and not (self.narrow and on_path(node, self.path)):
            return self._keep_on_some_paths(node, effect, bound, skip) if node.branch else results
        if _is_mean(node.op, bound):
            return results
        node.saves = effect.once
        for what, needed in effect.saves:
            lean = self._needed(needed, bound)
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
        held = self.path, self.assumed, self.narrow
        for guard in node.branch:
            if on_path(node, self.path | guard) and not contradicts(guard, self.path):
                self.path, self.assumed, self.narrow = self.path | guard, self.assumed | guard, True
                results = self.keep(node, effect, bound, skip)
                self.path, self.assumed, self.narrow = held
        return results

    def _needed(self, names: Iterable[str], bound: Mapping[str, Value]) -> Lean | None:
        """What it leans on that one of these inputs requires grad; None where none surely does."""
        best: Lean | None = None
        for name in names:
            value = bound.get(name)
            if value is not None and self.requires(value) is True and not _leads_nowhere(value):
                lean = self._leaning((value,))
                if best is None or len(lean) < len(best):
                    best = lean
        return best

    # -- writes --------------------------------------------------------------------------------------------

    def write(self, tensor: Tensor, place: Place, form: str, silent: bool = False) -> Write:
        """Overwrite a tensor's storage: what nodes saved of it is spoiled, where the paths agree."""
        write = Write(place, self.path, form, silent or tensor.counter is not None, tensor.counter)
        storage = tensor.storage
        again = self._again()
        storage.writes.append(write)
        self.trail.clock += 1
        for saved in () if again else storage.savers:
            unseen = silent or write.counter is not saved.counter
            if unseen and not write.silent:
                continue  # saved through `.data`, written by its first name
            if implies(self.path, saved.tested) and not contradicts(self.path, saved.path):
                if saved.node.spoiled is None:
                    saved.node.spoiled = []
                saved.node.spoiled.append(Spoil(saved, write, unseen))
                self.spoils += 1
        return write

    def _again(self) -> bool:
        """Whether this runs under a test of memory that was written under that test before: it runs once."""
        tested = (
            [storage for key, _ in self.path for storage in self.about.get(key, ())] if self.about else []
        )
        return any(
            storage in self.about.get(key, ())
            for storage in tested
            for write in storage.writes
            for key, _ in write.path
        )

    def rebase(self, tensor: Tensor, node: Node) -> None:
        """Give a tensor that was written in place the history of the write."""
        trail = self.trail
        if (shown := (tensor.base or tensor).maybe) is not None and node.requires is not False:
            self._may_show(shown, node)
        if tensor.base is not None and tensor.view != "loose":
            node = self._through_base(tensor.base, node)
        generation = tensor.storage.generation + 1
        tensor.storage.generation = generation
        trail.set(tensor, "generation", generation)
        trail.set(tensor, "node", node)
        trail.set(tensor, "requires", node.requires)
        trail.set(tensor, "lean", node.lean)
        if tensor.leaf and node.requires is not False:
            trail.set(tensor, "leaf", node.requires is None and None)

    def _may_show(self, tensor: Tensor, node: Node) -> None:
        """What may be the same memory may have learned a history."""
        for one in (tensor, tensor.base, tensor.maybe):
            if one is not None and one.requires is False:
                joined = Node("maybe", node.place, (one.node, node), None)
                joined.may, joined.lean = True, node.lean
                for name, fact in (("node", joined), ("requires", None), ("leaf", None)):
                    self.trail.set(one, name, fact)

    def _through_base(self, base: Tensor, node: Node) -> Node:
        """A write to a view is one to its base: what the view shows from then on comes from there."""
        trail = self.trail
        above = Node(
            "copy_slices", node.place, (self.history(base), node), either((base.requires, node.requires))
        )
        above.path = self.path
        above.saves = True
        above.lean = node.lean if base.requires is not True else base.lean
        trail.set(base, "node", above)
        if above.requires is not base.requires:
            trail.set(base, "requires", above.requires)
            trail.set(base, "lean", above.lean)
        if base.leaf and above.requires is not False:
            trail.set(base, "leaf", above.requires is None and None)
        seen = Node("view", node.place, (above,), above.requires)
        seen.path, seen.lean = self.path, above.lean
        return seen


def also_runs(defect: Defect, evidence: Iterable[Evidence]) -> Defect:
    """A defect with one more backward that meets it, where that is another one."""
    more = tuple(one for one in evidence if one.role == HERE and one not in defect.evidence)
    few = len(defect.evidence) < 8
    return replace(defect, evidence=defect.evidence + more) if more and few else defect


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
    if not op.startswith("adaptive_avg_pool"):
        return False
    size = bound.get("output_size")
    sizes = size.items if isinstance(size, Seq) else [size]
    return not any(isinstance(one, Const) and one.value not in (1, None) for one in sizes)


def _passed_by(inputs: Iterable[Value]) -> Place:
    """Where the inference mode was entered that all operands come from: autograd passes them by."""
    given = [one for value in inputs for one in (value.items if isinstance(value, Seq) else (value,))]
    entered = [one.storage.inference for one in given if isinstance(one, Tensor)]
    return entered[0] if entered and all(place is not None for place in entered) else None


def _copied(op: str, tensor: Tensor, bound: Mapping[str, Value]) -> bool:
    """Whether an operation may work on, and keep, a contiguous copy of an input of this layout."""
    if tensor.layout is True or tensor.view in ("", "loose"):
        return False
    if op == "einsum":
        return True
    made, rank = tensor.node.op, None if tensor.shape is None else len(tensor.shape)
    if op.startswith(NORMS):
        return made in PIECES
    if op not in FLATTENING or (rank is not None and rank <= 2):
        return False
    other = bound.get("other", bound.get("tensor2"))
    if isinstance(other, Tensor) and not other.parameter and (other.shape is None or len(other.shape) > 2):
        return False
    return made in PERMUTED or (rank is not None and made == "getitem")


def either(facts: Iterable[Truth]) -> Truth:
    """Three-valued or."""
    result: Truth = False
    for fact in facts:
        if fact is True:
            return True
        if fact is None:
            result = None
    return result


def plain_number(value: Value) -> bool:
    """Whether a value is a Python number, known or converted."""
    return isinstance(value, Number) or (isinstance(value, Const) and isinstance(value.value, NUMBER_TYPES))
