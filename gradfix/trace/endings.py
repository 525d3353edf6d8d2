"""What can only be said when the run is over: parameters that never got a gradient, graphs kept alive."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import torch

from gradfix.defects import Role, kind_of
from gradfix.trace.backwards import Backwards
from gradfix.trace.graphs import FREED
from gradfix.trace.places import Spot, resolve, shown
from gradfix.trace.severed import misspelt
from gradfix.trace.sources import Source
from gradfix.trace.state import State, Step
from gradfix.trace.steps import Steps, parameters_of

WRITTEN_OUT = ("tensor", "as_tensor")
"""Numbers that the program knows are not there to be learned, though they may require a gradient."""


class Endings:
    """Reads the books at the end."""

    def __init__(self, state: State, backwards: Backwards, steps: Steps) -> None:
        self.state = state
        self.backwards = backwards
        self.steps = steps

    def close(self) -> dict[str, str]:
        """Say what is left to say; the reasons for each parameter without a gradient."""
        self._misspelt()
        self._kept_alive()
        self._checkpoints()
        return self._unreached() if self.backwards.succeeded or self.state.ledger.steps else {}

    def _unreached(self) -> dict[str, str]:
        reasons: dict[str, str] = {}
        for optimizer, built_at, built in self.state.optimizers.items():
            parameters = parameters_of(optimizer)
            missed = [p for p in parameters if not self.reached(p)]
            for parameter in missed:
                reasons[self.state.names.of(parameter)] = self.reason(parameter)
            trained = [p for p in missed if p.requires_grad and id(p) not in self.state.ledger.kept]
            if id(optimizer) in self.state.ledger.steps and trained:
                self._optimizer(optimizer, trained, len(trained) == len(parameters), built_at, built)
            if id(optimizer) in self.state.ledger.steps and self.state.unasked.held:
                self._frozen(optimizer, built)
        self._in_no_optimizer(reasons)
        return reasons

    def reached(self, parameter: Any) -> bool:
        """Whether a backward has given to a leaf, cleared since or not."""
        slot = self.state.ledger.slots.get(id(parameter))
        return slot is not None and slot.leaf() is parameter and slot.ever

    def _cut_for(self, parameters: list[Any]) -> Source | None:
        wanted = {id(p) for p in parameters}
        found = [s for s in self.state.origins.all if s.leaves & wanted and s.entered and not s.rebinds]
        return found[-1] if found else None

    def reason(self, parameter: Any) -> str:
        """Why no backward has given to a parameter, with the line to look at."""
        if not parameter.requires_grad:
            return "frozen"
        cut = self._cut_for([parameter])
        if cut is not None and cut.spot is not None:
            code = cut.spot[0]
            # Of a region: the mode, without how it is written.
            form = cut.form.rpartition(" ")[2] if cut.region else cut.form
            return f"cut by {form or cut.kind} in {code.co_name}, {shown(resolve(cut.spot))}"
        if id(parameter) not in self.state.used:
            return "never called"
        used = self.state.used[id(parameter)]
        return "its result is not used by the loss" + (f", {shown(resolve(used))}" if used else "")

    def _optimizer(
        self, optimizer: Any, missed: list[Any], whole: bool, built_at: int, built: Spot | None
    ) -> None:
        name = self.steps.name(optimizer)
        facts: dict[str, Any] = {
            "optimizer": name,
            "parameters": [self.state.names.of(p) for p in missed][:20],
        }
        replaced = self._replacement(built_at)
        if replaced is not None and any(id(p) not in self.state.used for p in missed):
            self.state.defect("optimizer_before_replacement", built, [(Role.REPLACED, replaced)], "", facts)
            return
        cut = self._cut_for(missed)
        if cut is not None and cut.scalar and kind_of(cut.kind).term and not whole:
            evidence: list[Step] = [(Role.OPTIMIZER_BUILT, built)]
            facts.update(form=cut.form, cut_kind=cut.kind)
            self.state.defect("severed_term", cut.spot, evidence, "", facts)
        # A part run without recording beside parts that train is left so on purpose, unless it has a group.
        elif whole or (cut is not None and (not cut.region or _whole_group(optimizer, missed))):
            steps: list[Step] = [(Role.CUT, cut.spot)] if cut is not None else []
            self.state.defect("unreached_parameters", built, steps, "", facts)

    def _frozen(self, optimizer: Any, built: Spot | None) -> None:
        """A group of an optimizer that is frozen as it was made, which nobody has asked for."""
        for group in optimizer.param_groups:
            frozen = [p for p in group["params"] if not p.requires_grad and not self.state.frozen.get(p)]
            made = [one for one in map(self.state.unasked.get, frozen) if one is not None]
            if made and len(made) == len(group["params"]):
                evidence = [(Role.FROZEN, made[0][1]), (Role.NEVER_TRAINED, built)]
                names = [self.state.names.of(p) for p in frozen][:20]
                facts = {"optimizer": self.steps.name(optimizer), "parameters": names, "cut_kind": "frozen"}
                self.state.defect("unreached_parameters", built, evidence, "", facts)

    def _replacement(self, built_at: int) -> Spot | None:
        """A module built after the optimizer, trained by backward and by no optimizer."""
        held = {id(p) for o, *_ in self.state.optimizers.items() for p in parameters_of(o)}
        for module, at, spot in self.state.modules.items():
            own = vars(module).get("_parameters", {}).values()
            if at >= built_at and any(p is not None and self.reached(p) and id(p) not in held for p in own):
                return spot
        return None

    def _in_no_optimizer(self, reasons: dict[str, str]) -> None:
        """Parameters that backward reaches but nobody trains: unregistered ones among them."""
        held = {id(p) for o, *_ in self.state.optimizers.items() for p in parameters_of(o)}
        for slot in list(self.state.ledger.slots.values()):
            leaf = slot.leaf()
            if leaf is None or id(leaf) in held or not slot.ever or not isinstance(leaf, torch.nn.Parameter):
                continue
            if self.state.ledger.steps and id(leaf) not in self.state.ledger.hand:
                reasons[self.state.names.of(leaf)] = "in no optimizer"
        for module, _, built in self.state.modules.items():
            if children_of(module):
                self._unregistered(module, built, held)

    def _unregistered(self, module: Any, built: Spot | None, held: set[int]) -> None:
        """A plain list or dict of a module that holds what it should have registered."""
        for name, value in list(vars(module).items()):
            if isinstance(value, torch.Tensor):
                self._plain(module, name, value, held)
            if name.startswith("_") or not isinstance(value, (list, tuple, dict)):
                continue
            items = list(value.values() if isinstance(value, dict) else value)
            inside = [leaf for item in items for leaf in leaves_in(item)]
            own = {id(p) for p in module.parameters()} if inside else set()
            trained = own | held | self.state.ledger.hand.keys()
            if any(self.reached(leaf) and id(leaf) not in trained for leaf in inside):
                spots = (self.state.built_at(item) for item in items)
                inner = next((spot for spot in spots if spot is not None), None)
                facts = {
                    "attribute": name,
                    "container": "dict" if isinstance(value, dict) else "list",
                    "class": type(module).__name__,
                }
                chain: list[Step] = [(Role.MODULE_BUILT, built)]
                self.state.defect("unregistered_parameters", inner or built, chain, "", facts)

    def _plain(self, module: Any, name: str, value: Any, held: set[int]) -> None:
        """A tensor of a module that backward reaches and nobody uses, though its parameters are trained."""
        leaf = value if value.is_leaf else leaf_of(value)
        slot = self.state.ledger.slots.get(id(leaf))
        if leaf is None or id(leaf) in held or not self.reached(leaf) or slot is None or slot.read >= 0:
            return
        if any(source.form in WRITTEN_OUT for source, _ in self.state.origins.get(leaf)):
            return
        for optimizer, _, built in self.state.optimizers.items():
            own = {id(p) for p in module.parameters()}
            if id(optimizer) in self.state.ledger.steps and own & {id(p) for p in parameters_of(optimizer)}:
                made = value.grad_fn.metadata.get("gradfix") if value.grad_fn is not None else None
                facts = {"attribute": name, "container": "tensor", "class": type(module).__name__}
                chain: list[Step] = [(Role.TAKES_ONLY_REGISTERED, built)]
                self.state.defect("unregistered_parameters", made[1] if made else built, chain, "", facts)
                return

    def _misspelt(self) -> None:
        frozen: dict[tuple[str, str, Spot | None], list[str]] = {}
        """What each assignment was to freeze, by where it is told."""
        for module, _, built in self.state.modules.items():
            wanted = vars(module).get("requires_grad")
            if isinstance(wanted, bool) and children_of(module):
                differ = [p for p in module.parameters() if p.requires_grad is not wanted]
                if differ:
                    names = [self.state.names.of(p) for p in differ if not wanted]
                    frozen.setdefault(("module", "requires_grad", built), []).extend(names)
        for parameter, near in self._parameters():
            wrong = misspelt(parameter)
            if wrong:
                freezes = parameter.requires_grad and getattr(parameter, wrong) is False
                names = [self.state.names.of(parameter)] if freezes else []
                frozen.setdefault(("tensor", wrong, near), []).extend(names)
        for (on, attribute, near), names in frozen.items():
            facts = {"on": on, "attribute": attribute, "frozen": sorted(set(names))}
            self.state.defect("requires_grad_misspelt", near, [], "", facts)

    def _parameters(self) -> Iterator[tuple[Any, Spot | None]]:
        """What optimizers and modules hold, with where those were built."""
        for optimizer, _, built in self.state.optimizers.items():
            yield from ((parameter, built) for parameter in parameters_of(optimizer))
        for module, _, built in self.state.modules.items():
            own = vars(module).get("_parameters", {}).values()
            yield from ((parameter, built) for parameter in own if parameter is not None)

    def _checkpoints(self) -> None:
        """Reentrant checkpoints whose function never got a gradient."""
        for source in self.state.origins.all:
            slots = [self.state.ledger.slots.get(leaf) for leaf in source.leaves]
            if source.checkpoint and not any(s is not None and s.ever for s in slots):
                self.state.defect(source.kind, source.spot, [], "", {"form": source.form})

    def _kept_alive(self) -> None:
        """Lists that hold on to graphs which backward has gone through."""
        for name, value in self.state.names.variables():
            for key, held in lists_of(name, value):
                tensors = [v for v in held[-64:] if isinstance(v, torch.Tensor) and v.grad_fn is not None]
                freed = FREED.among(v.grad_fn for v in tensors)
                if len({serial for _, serial in freed.values()}) > 1:
                    node: Any = next(v.grad_fn for v in tensors if v.grad_fn in freed)
                    made = node.metadata.get("gradfix")
                    facts = {"held_by": key, "form": "append"}
                    self.state.defect("graph_leak", self._keeper(made, freed[node][0]), [], "", facts)

    def _keeper(self, made: Any, backward: Spot | None) -> Spot | None:
        """Where to look for who keeps a value: where it was made, or in the file of its backward."""
        if made is None or backward is None or made[1] is None:
            return made[1] if made is not None else backward
        same = made[1][0].co_filename == backward[0].co_filename
        return made[1] if same else backward


def lists_of(name: str, value: Any) -> list[tuple[str, list[Any]]]:
    """The lists in a variable: itself, in a dict, in an object."""
    if isinstance(value, list):
        return [(name, value)]
    if isinstance(value, dict):
        return [(f"{name}[{k!r}]", v) for k, v in list(value.items())[:64] if isinstance(v, list)]
    if hasattr(value, "__dict__") and not isinstance(value, (type, torch.nn.Module, ModuleType)):
        return [(f"{name}.{k}", v) for k, v in list(vars(value).items())[:64] if isinstance(v, list)]
    return []


def children_of(module: Any) -> bool:
    """Whether a module is whole: `super().__init__()` has run."""
    return "_modules" in vars(module)


def leaves_in(item: Any) -> list[Any]:
    """The parameters of one item of a list, or of a row of it."""
    if isinstance(item, torch.nn.Module):
        return list(item.parameters())
    if isinstance(item, (list, tuple)):
        return [leaf for one in item if isinstance(one, torch.nn.Module) for leaf in one.parameters()]
    return [item] if isinstance(item, torch.nn.Parameter) else []


def leaf_of(value: Any) -> Any:
    """The one leaf that a tensor was made of, where there is one."""
    node = value.grad_fn
    while node is not None and not hasattr(node, "variable"):
        above = [one for one, _ in node.next_functions if one is not None]
        node = above[0] if len(above) == 1 else None
    return None if node is None else node.variable


def _whole_group(optimizer: Any, missed: list[Any]) -> bool:
    """Whether one of several parameter groups is among what is missed, with all that it has."""
    ids = {id(parameter) for parameter in missed}
    groups = [group["params"] for group in optimizer.param_groups]
    return len(groups) > 1 and any(
        group and all(id(parameter) in ids for parameter in group) for group in groups
    )
