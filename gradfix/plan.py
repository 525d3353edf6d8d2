"""What to look for and what to do about it: one plan for listing, applying, verifying and running."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from gradfix import registry
from gradfix.config import Config, ConfigError
from gradfix.defects import Certainty, Convention, Defect, Enough
from gradfix.neighbours import Neighbours
from gradfix.outcome import RuleCard
from gradfix.patterns import Patterns, fault
from gradfix.registry import Codemod
from gradfix.rule import Finding, Options, Safety
from gradfix.source import Source
from gradfix.tape.analysis import Analysis
from gradfix.tape.effects.frameworks import ROWS, merged

if TYPE_CHECKING:
    from gradfix.notebook import Notebook

Analyse: TypeAlias = "Callable[[Source, Plan], Analysis]"


def tape(source: Source, plan: Plan) -> Analysis:
    """Play a file on the abstract tape, with what it imports as it stands on disk."""
    return played(source, plan, neighbours())


def played(source: Source, plan: Plan, others: Neighbours) -> Analysis:
    """Play a file on the abstract tape, imported only when there is a file to play."""
    from gradfix.tape.entries import analyse

    rows = plan.config.frameworks
    resolve = others if plan.follows_imports else None
    found = analyse(source, resolve, merged(ROWS, rows)) if rows else analyse(source, resolve)
    return found if source.notebook is None else _in_order(found, source.notebook)


def _in_order(found: Analysis, notebook: Notebook) -> Analysis:
    """What leans on several cells leans on their being run as they stand."""
    return replace(found, defects=tuple(_leaning(defect, notebook) for defect in found.defects))


def _leaning(defect: Defect, notebook: Notebook) -> Defect:
    spans = (defect.culprit, *(step.span for step in defect.evidence if step.path is None))
    cells = {notebook.cell_at(span.line)[0].number for span in spans}
    return replace(defect, lean=defect.lean | {Convention.H}) if len(cells) > 1 else defect


@cache
def neighbours() -> Neighbours:
    """One for each process, so that a module that many files import is parsed once."""
    return Neighbours()


def forget() -> None:
    """What other modules of the project say may have changed since they were read."""
    neighbours.cache_clear()


@dataclass(frozen=True, slots=True)
class Plan:
    """What the user has asked for, as all that look at files read it, in this process or another."""

    config: Config
    follows_imports: bool = False
    analyse: Analyse = tape
    here: str = ""
    """What names of files are seen from, where that isn't the working directory."""

    @property
    def options(self) -> Options:
        """What the rewrites are told."""
        return Options(self.config.reduction)

    def rules(self, path: str) -> Mapping[str, Codemod]:
        """The rules that are selected for a file: read only where there is something to say of it."""
        selected = self._selected()
        ignored = [code for codes in self._ignored(path) for code in codes]
        kept = selected & registry.resolve(registry.codemods(), ("ALL",), ignored) if ignored else selected
        return {name: codemod for name, codemod in registry.codemods().items() if name in kept}

    def cards(self) -> tuple[RuleCard, ...]:
        """What may be said of the rules that are selected."""
        selected = self._selected()
        return tuple(each.card for name, each in registry.codemods().items() if name in selected)

    def _selected(self) -> frozenset[str]:
        config = self.config
        return registry.resolve(registry.codemods(), config.select, config.ignore, config.extend_select)

    def _ignored(self, path: str) -> Iterator[tuple[str, ...]]:
        """What the configuration ignores in a file."""
        if not self.config.per_file_ignores:
            return
        whole = os.path.join(self.here, path)
        for pattern, codes in self.config.per_file_ignores:
            if Patterns.read(str(self.config.root), [pattern]).ignore(whole):
                yield codes

    def lists(self, defect: Defect) -> bool:
        """Say whether a defect is sure enough to be a finding; suspects are none unless asked for."""
        if defect.certainty == "suspect":
            return self.config.suspects
        return _enough(defect.certainty, self.config.min_certainty)

    def applies(self, finding: Finding) -> bool:
        """Say whether a finding is to be rewritten."""
        unsafe = finding.safety is Safety.UNSAFE and self.config.unsafe_fixes
        allowed = finding.safety is Safety.SAFE or unsafe
        return allowed and _enough(finding.certainty, self.config.fix_certainty)

    def without(self, rule: str) -> Plan:
        """The same without a rule."""
        return replace(self, config=replace(self.config, ignore=(*self.config.ignore, rule)))


def plan_for(config: Config, follows_imports: bool = True) -> Plan:
    """The plan that a configuration asks for, if it names rules that exist and files that may."""
    for key, selectors in config.selectors().items():
        for selector in registry.unknown(registry.codemods(), selectors) if selectors else ():
            hint = registry.suggestion(registry.codemods(), selector)
            raise ConfigError(f"{key}: {selector!r} names no rule; {hint}")
    for key, patterns in config.patterns().items():
        for pattern in patterns:
            if wrong := fault(pattern):
                raise ConfigError(f"{key}: the pattern {pattern!r} {wrong}")
    return Plan(config, follows_imports)


def _enough(certainty: Certainty, least: Enough) -> bool:
    return certainty == "certain" or (certainty == "likely" and least == "likely")
