"""Explains a root, or a term of it, that has lost its graph."""

from __future__ import annotations

from typing import Any

from gradfix.trace.places import Spot
from gradfix.trace.sources import Source, Sources
from gradfix.trace.state import State, Step

ORDER = (
    "leaf_rebound", "requires_grad_on_result", "reentrant_checkpoint_cut", "converted_loss_path",
    "detached_loss_path", "forward_in_no_grad", "non_differentiable_loss",
)  # fmt: skip
TERMS = ("converted_loss_path", "detached_loss_path")


class Severed:
    """Names the cut behind a backward that fails for want of a graph, or that misses a term."""

    def __init__(self, state: State) -> None:
        self.state = state

    def root(self, roots: list[Any], spot: Spot | None, text: str) -> None:
        """backward refused: nothing behind the root requires a gradient."""
        sources = self._known(roots)
        cuts = [source for source, _ in sources if source.cut]
        if cuts:
            self._say(first(cuts), cuts, spot, text)
            return
        made = [source for source, _ in sources if source.kind == "made"]
        place = made[-1].spot if made else spot
        evidence: list[Step] = [("made here", source.spot) for source in made]
        evidence.append(("backward here", spot))
        facts = {"names": [self.state.names.of(root) for root in roots]}
        self.state.defect("no_leaf_requires_grad", place, evidence, text, facts)

    def _known(self, roots: list[Any]) -> Sources:
        """The root's sources; where a number broke the chain, the conversions since the last backward."""
        sources: Sources = ()
        for root in roots:
            sources += self.state.origins.get(root)
        if any(source.cut for source, _ in sources):
            return sources
        numbers = [s for s in self.state.origins.recent if s.kind == "converted_loss_path"]
        detached = [s for s in self.state.origins.recent if s.form == "numpy"]
        found = numbers or detached
        return tuple((source, True) for source in found[-4:]) + sources

    def _say(self, main: Source, cuts: list[Source], spot: Spot | None, text: str) -> None:
        evidence: list[Step] = [("cut here as well", one.spot) for one in cuts if one is not main][:4]
        evidence += [("kept out of the graph", one) for one in main.inner[:6]]
        evidence.append(("backward here", spot))
        self.state.defect(main.kind, main.spot, evidence, text, {"form": main.form, **self._lost(main)})

    def _lost(self, main: Source) -> dict[str, Any]:
        names = [self.state.names.by_id(leaf) for leaf in main.leaves]
        return {"parameters": sorted(name for name in names if name)[:20]}

    def after(self, roots: list[Any], leaves: list[Any], spot: Spot | None) -> None:
        """backward went through: was it into the void, or past a term?"""
        for root in roots:
            cuts = [(source, term) for source, term in self.state.origins.get(root) if source.cut]
            if not cuts:
                continue
            if root.is_leaf:
                found = [source for source, _ in cuts]
                self._say(first(found), found, spot, "")
                continue
            self._terms([s for s, term in cuts if term], spot)

    def _terms(self, cuts: list[Source], spot: Spot | None) -> None:
        for source in cuts:
            if source.kind in TERMS and source.scalar:
                facts = {"form": source.form, "cut_kind": source.kind, **self._lost(source)}
                self.state.defect("severed_term", source.spot, [("backward here", spot)], "", facts)


def first(cuts: list[Source]) -> Source:
    """The cut to mend first: the most telling kind, the latest of it."""
    return min(cuts, key=lambda source: (ORDER.index(source.kind), -source.at))
