"""What to look for and what to do about it: one plan for listing, applying, verifying and running."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeAlias

from gradfix import registry
from gradfix.config import Config, ConfigError
from gradfix.defects import Certainty, Defect, Enough
from gradfix.neighbours import Neighbours
from gradfix.outcome import RuleCard
from gradfix.registry import Codemod
from gradfix.rule import Finding, Options, Safety
from gradfix.source import Source
from gradfix.tape.analysis import Analysis
from gradfix.tape.effects.frameworks import ROWS, merged

Analyse: TypeAlias = "Callable[[Source, Plan], Analysis]"


def tape(source: Source, plan: Plan) -> Analysis:
    """Play a file on the abstract tape, with what it imports as it stands on disk."""
    return played(source, plan, _neighbours())


def played(source: Source, plan: Plan, neighbours: Neighbours) -> Analysis:
    """Play a file on the abstract tape, imported only when there is a file to play."""
    from gradfix.tape.entries import analyse

    rows = plan.config.frameworks
    resolve = neighbours if plan.follows_imports else None
    return analyse(source, resolve, merged(ROWS, rows)) if rows else analyse(source, resolve)


@cache
def _neighbours() -> Neighbours:
    """One for each process, so that a module that many files import is parsed once."""
    return Neighbours()


@dataclass(frozen=True, slots=True)
class Plan:
    """What the user has asked for, as all that look at files read it, in this process or another."""

    config: Config
    follows_imports: bool = False
    analyse: Analyse = tape

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
        from gradfix.patterns import Patterns

        for pattern, codes in self.config.per_file_ignores:
            if Patterns.read(str(self.config.root), [pattern]).ignore(path):
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
    """The plan that a configuration asks for, if it names rules that exist."""
    for key, selectors in config.selectors().items():
        for selector in registry.unknown(registry.codemods(), selectors) if selectors else ():
            hint = registry.suggestion(registry.codemods(), selector)
            raise ConfigError(f"{key}: {selector!r} names no rule; {hint}")
    return Plan(config, follows_imports)


def _enough(certainty: Certainty, least: Enough) -> bool:
    return certainty == "certain" or (certainty == "likely" and least == "likely")
