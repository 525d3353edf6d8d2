"""Explains a root, or a term of it, that has lost its graph."""

from __future__ import annotations

from typing import Any

import torch

from gradfix import spelling
from gradfix.defects import Role, kind_of
from gradfix.trace.places import Spot
from gradfix.trace.sources import Source, Sources
from gradfix.trace.state import State, Step


class Severed:
    """Names the cut behind a backward that fails for want of a graph, or that misses a term."""

    def __init__(self, state: State) -> None:
        self.state = state

    def handed_out(self, gradients: Any, leaves: list[Any], spot: Spot | None) -> None:
        """`torch.autograd.grad` was asked for gradients, and not told whether they are to have a graph."""
        behind = set(map(id, leaves))
        for one in gradients:
            if isinstance(one, torch.Tensor) and not one.requires_grad:
                source = Source("gradient_without_graph", spot, "grad", False, self.state.count, behind)
                self.state.origins.put(one, ((source, False),))

    def refused(self, roots: list[Any], asked: Any, spot: Spot | None, text: str) -> None:
        """Something does not require a gradient: what one was asked for, or what is behind the root."""
        given = [asked] if isinstance(asked, torch.Tensor) else list(asked or ())
        constants = [one for one in given if isinstance(one, torch.Tensor) and not one.requires_grad]
        if not constants:
            self.root(roots, spot, text)
            return
        # Of a result that is made of several, none is the one to learn.
        sources = [source for source, _ in self.state.origins.get(constants[0])]
        place = sources[0].spot if len(sources) == 1 and sources[0].kind == "made" else spot
        evidence: list[Step] = [(Role.CONSTANT, place), (Role.ASKED, spot)]
        names = [self.state.names.of(one) for one in constants]
        facts = {"names": names, "sought": "autograd.grad() is asked for"}
        self.state.defect("no_leaf_requires_grad", place, evidence, text, facts)

    def root(self, roots: list[Any], spot: Spot | None, text: str) -> None:
        """backward refused: nothing behind the root requires a gradient."""
        sources = self._known(roots)
        cuts = [source for source, _ in sources if source.cut]
        if cuts:
            self._say(first(cuts), cuts, spot, text)
            return
        if self._misspelt(text, spot):
            return
        made = [source for source, _ in sources if source.kind == "made"]
        place = made[-1].spot if made else spot
        evidence: list[Step] = [(Role.MADE, source.spot) for source in made]
        evidence.append((Role.BACKWARD_HERE, spot))
        facts = {"names": [self.state.names.of(root) for root in roots]}
        self.state.defect("no_leaf_requires_grad", place, evidence, text, facts)

    def _misspelt(self, text: str, spot: Spot | None) -> bool:
        """A tensor of the program carries an attribute that is almost the right one."""
        for name, value in self.state.names.variables():
            wrong = misspelt(value) if isinstance(value, torch.Tensor) else ""
            if wrong:
                facts = {"on": "tensor", "attribute": wrong, "target": name}
                self.state.defect("requires_grad_misspelt", spot, [(Role.BACKWARD_HERE, spot)], text, facts)
                return True
        return False

    def _known(self, roots: list[Any]) -> Sources:
        sources: Sources = ()
        for root in roots:
            sources += self.state.origins.behind(root)
        return sources

    def _say(self, main: Source, cuts: list[Source], spot: Spot | None, text: str) -> None:
        evidence: list[Step] = [(Role.CUT_AS_WELL, one.spot) for one in cuts if one is not main][:4]
        evidence += [(Role.KEPT_OUT, one) for one in main.inner[:6]]
        evidence.append((Role.BACKWARD_HERE, spot))
        self.state.defect(main.kind, main.spot, evidence, text, {"form": main.form, **self._lost(main)})

    def _lost(self, main: Source) -> dict[str, Any]:
        names = [self.state.names.by_id(leaf) for leaf in main.leaves]
        return {"parameters": sorted(name for name in names if name)[:20]}

    def after(self, roots: list[Any], leaves: list[Any], spot: Spot | None) -> None:
        """backward went through: was it into the void, or past a term?"""
        table = self.state.origins.of_tensor
        if any(id(leaf) in table for leaf in leaves) and self._void(roots, leaves, spot):
            return
        for root in roots:
            self._terms([s for s, term in self.state.origins.get(root) if term and self._misses(s)], spot)

    def _void(self, roots: list[Any], leaves: list[Any], spot: Spot | None) -> bool:
        """Whether a leaf is only what is left of a cut."""
        cuts = {id(leaf): self._cuts(leaf) for leaf in leaves}
        trained = any(isinstance(leaf, torch.nn.Parameter) and not cuts[id(leaf)] for leaf in leaves)
        for leaf in leaves:
            found = cuts[id(leaf)]
            main = first(found) if found else None
            if main is None or trained or id(leaf) in main.leaves:
                continue
            if main.number or leaf.numel() == 1 or any(leaf is root for root in roots):
                self._say(main, found, spot, "")
                return True
        return False

    def _cuts(self, leaf: Any) -> list[Source]:
        if not self.state.origins.get(leaf):
            return []
        return [s for s, _ in self.state.origins.behind(leaf) if self._misses(s) and s.form != "grad"]

    def _misses(self, source: Source) -> bool:
        """Whether a gradient is lost there: behind it is a leaf that still wants one."""
        return source.cut and not source.leaves <= self.state.frozen.held.keys()

    def number(self, text: str, spot: Spot | None) -> None:
        """`'float' object has no attribute 'backward'`: the loss itself became a number."""
        cuts = [s for s in self.state.origins.recent if s.number]
        if cuts:
            self._say(cuts[-1], cuts, spot, text)

    def _terms(self, cuts: list[Source], spot: Spot | None) -> None:
        for source in cuts:
            if source.asked:
                self._without(source, spot)
            elif kind_of(source.kind).term and source.scalar:
                facts = {"form": source.form, "cut_kind": source.kind, **self._lost(source)}
                self.state.defect("severed_term", source.spot, [(Role.BACKWARD_HERE, spot)], "", facts)

    def _without(self, source: Source, spot: Spot | None) -> None:
        """A term of a loss is made of gradients without a graph: whose parameters does it leave alone?"""
        if source.leaves & self.state.used.keys():
            evidence: list[Step] = [(Role.CUT, source.spot), (Role.WITHOUT, spot)]
            self.state.defect(source.kind, source.spot, evidence, "", self._lost(source))


def misspelt(value: Any) -> str:
    """An attribute of a tensor that was meant to be requires_grad."""
    return next((name for name in vars(value) if spelling.misspelt(name)), "")


def first(cuts: list[Source]) -> Source:
    """The cut to mend first: the most telling kind, the latest of it."""
    return min(cuts, key=lambda source: (kind_of(source.kind).rank or 0, -source.at))
