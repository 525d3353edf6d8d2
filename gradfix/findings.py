"""From the tape's defects to findings: who is selected, what the user reads, how it would be rewritten."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gradfix import registry
from gradfix.aftermath import followers, gone, rewritten, text_with, then_fails
from gradfix.defects import Defect, Evidence
from gradfix.defects.reasons import Reason
from gradfix.defects.severed import Severed
from gradfix.outcome import DoubtfulSuppression, UnusedSuppression
from gradfix.plan import Plan
from gradfix.registry import Codemod
from gradfix.rule import Decline, Finding, Fix, Safety
from gradfix.source import Source
from gradfix.suppressions import Suppression, Suppressions
from gradfix.tape.analysis import Silence

if TYPE_CHECKING:
    from gradfix.tree import Tree

LONGEST_CULPRIT = 72
FIRST = "mend line {line} first: this may be right then"
NO_WAY = "compute it from what should learn: a rewrite here alone brings no gradient that anybody asks for"
THEN = "{says}; but then {then}"
ANOTHER = "another cut keeps the gradient back as well: let it through both"


LARGE = 2_000_000
"""The largest file that is rewritten, in bytes: a tree with all its blanks takes some 500 times as much."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A finding with the edits that would mend it."""

    finding: Finding
    fix: Fix | None


@dataclass(frozen=True, slots=True)
class Seen:
    """What one look at a text has found."""

    source: Source
    tree: Tree | None
    candidates: tuple[Candidate, ...]
    suppressed: int
    unused: tuple[UnusedSuppression, ...]
    doubtful: tuple[DoubtfulSuppression, ...]
    silences: tuple[Silence, ...]
    too_complex: str

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(candidate.finding for candidate in self.candidates)


def look(source: Source, suppressions: Suppressions, plan: Plan, mending: bool = True) -> Seen:
    """Play a text on the tape and turn what it says into findings, with the rewrites that would mend them."""
    analysis = plan.analyse(source, plan)
    rules = plan.rules(source.path) if analysis.defects or suppressions.ignores else {}
    selected = (defect for defect in analysis.defects if defect.kind in rules)
    every = sorted(selected, key=lambda defect: (defect.culprit, defect.kind))
    silencing = {id(defect): _silencing(defect, suppressions, rules) for defect in every}
    defects = [defect for defect in every if plan.lists(defect)]
    heard = [defect for defect in defects if silencing[id(defect)] is None]
    tree, obstacle = _tree(source) if heard and mending else (None, "")
    candidates = [_candidate(one, rules[one.kind], source, tree or obstacle, plan) for one in heard]
    if tree is not None:
        both = zip(heard, candidates, strict=True)
        after = [rewritten(source, tree, one, each.fix) for one, each in both]
        candidates = [
            _lasting(each, then_fails(one, analysis.defects, source, then, plan), then, plan)
            if then
            else each
            for one, each, then in zip(heard, candidates, after, strict=True)
        ]
    return Seen(
        source,
        tree,
        tuple(_one_by_one(heard, candidates, (source, tree), plan) if tree is not None else candidates),
        len(defects) - len(heard),
        tuple(_unused(suppressions, {by for by in silencing.values() if by}, rules)),
        tuple(_doubtful(suppressions)),
        tuple(replace(each, span=source.places.in_characters(each.span)) for each in analysis.silences),
        analysis.too_complex,
    )


def _silencing(
    defect: Defect, suppressions: Suppressions, rules: Mapping[str, Codemod]
) -> Suppression | None:
    return suppressions.silencing(defect.culprit.line, rules[defect.kind].rule.code, defect.kind)


def _unused(
    suppressions: Suppressions, used: set[Suppression], rules: Mapping[str, Codemod]
) -> Iterator[UnusedSuppression]:
    """The comments that silence nothing, as far as the selected rules can tell."""
    for ignore in suppressions.ignores:
        if ignore in used:
            continue
        named = {name for name, each in registry.codemods().items() if ignore.names(each.rule.code, name)}
        if ignore.codes is None or (named and named <= rules.keys()):
            yield UnusedSuppression(ignore.line, ignore.text)


def _doubtful(suppressions: Suppressions) -> Iterator[DoubtfulSuppression]:
    for ignore in suppressions.ignores:
        if doubt := ignore.doubt(registry.codemods()):
            yield DoubtfulSuppression(ignore.line, ignore.text, doubt)


def _tree(source: Source) -> tuple[Tree | None, str]:
    """The tree that rewrites are made on, or why there is none."""
    from libcst import ParserSyntaxError

    from gradfix.tree import Tree, UnfaithfulError

    if len(source.content) > LARGE:
        return None, f"a file of {len(source.content) / 1e6:.0f} MB isn't rewritten: move its data elsewhere"
    try:
        if source.content != source.encode(source.text):
            return None, f"the encoding {source.encoding} does not give this file back as it was"
        return Tree(source.text), ""
    except ParserSyntaxError:
        return None, "libcst cannot parse this file"
    except RecursionError:
        return None, "this file is nested too deeply for libcst"
    except (UnfaithfulError, UnicodeEncodeError) as error:
        return None, str(error)


def _candidate(defect: Defect, codemod: Codemod, source: Source, tree: Tree | str, plan: Plan) -> Candidate:
    finding = _finding(defect, codemod, source)
    answer = Decline(tree) if isinstance(tree, str) else _answer(defect, codemod, source, tree, plan)
    if isinstance(answer, Decline) or isinstance(tree, str):
        reason = answer.reason if isinstance(answer, Decline) else ""
        return Candidate(replace(finding, decline=reason), None)
    return _mended(finding, answer, codemod, tree)


def _lasting(candidate: Candidate, failing: Iterator[Defect], after: Source, plan: Plan) -> Candidate:
    """A candidate, without its fix where the backward that this is for is certain to fail then, with nothing
    safe that mends it."""
    rules = plan.rules(after.path)
    for defect in failing:
        codemod = registry.codemods()[defect.kind]
        tree, obstacle = _tree(after)
        behind = _candidate(defect, codemod, after, tree or obstacle, plan).finding
        if defect.kind not in rules or behind.safety is not Safety.SAFE:
            then = ": ".join(filter(None, (behind.message, behind.decline or behind.says)))
            return _declined(candidate.finding, THEN.format(says=candidate.finding.says, then=then))
    return candidate


def _one_by_one(
    defects: Sequence[Defect], candidates: Sequence[Candidate], text: tuple[Source, Tree], plan: Plan
) -> list[Candidate]:
    """The candidates, without the fixes that the next look may show to be needless."""
    going = [i for i, one in enumerate(candidates) if one.fix is not None and plan.applies(one.finding)]
    told = list(candidates)
    for waiting, first in [
        *_later_writes(defects, going, text[1]),
        *_brought(defects, candidates, text, plan),
    ]:
        reason = FIRST.format(line=candidates[first].finding.span.line)
        told[waiting] = _declined(candidates[waiting].finding, reason)
    return told


def _later_writes(defects: Sequence[Defect], going: Sequence[int], tree: Tree) -> Iterator[tuple[int, int]]:
    """Of several writes over one saved value, each with the first."""
    if len(going) > 1:
        from gradfix.rewriting.one_cause import waits

        yield from ((going[one], going[first]) for one, first in waits(tree, [defects[i] for i in going]))


def _brought(
    defects: Sequence[Defect], candidates: Sequence[Candidate], text: tuple[Source, Tree], plan: Plan
) -> Iterator[tuple[int, int]]:
    """What another finding's rewrite alone settles, applied or not, with that."""
    for number, candidate in enumerate(candidates):
        brought = [one for one in followers(defects[number].kind, defects) if candidates[one].fix is not None]
        after = text_with(*text, candidate.fix) if brought else None
        if after is not None:
            yield from ((one, number) for one in gone(defects, brought, text[0], after, plan))


def _declined(finding: Finding, reason: str) -> Candidate:
    return Candidate(replace(finding, safety=None, says="", unsafe="", edits=(), decline=reason), None)


def _answer(defect: Defect, codemod: Codemod, source: Source, tree: Tree, plan: Plan) -> Fix | Decline:
    """The rewrite, where it would bring a gradient to somebody."""
    if isinstance(defect.facts, Severed) and not defect.facts.arrives:
        return Decline(NO_WAY)
    fix = codemod.rule.rewrite(defect, tree, plan.options)
    if isinstance(defect.facts, Severed) and not defect.facts.alone and isinstance(fix, Fix):
        return Decline(ANOTHER)
    return fix if source.notebook is None or isinstance(fix, Decline) else _in_cells(fix, source, tree)


def _in_cells(fix: Fix, source: Source, tree: Tree) -> Fix | Decline:
    """A rewrite of a notebook, if the lines that are IPython's and the borders of its cells allow it."""
    from gradfix.edits import apply

    try:
        source.encode(apply(tree, fix.edits))
    except ValueError as error:
        return Decline(f"{fix.says}, by hand: {error}")
    return fix


def _mended(finding: Finding, fix: Fix, codemod: Codemod, tree: Tree) -> Candidate:
    """A finding with its fix, unless applying the fix would leave the text as it is or unreadable."""
    from gradfix.edits import changes, text_edits

    changed = changes(tree, fix.edits)
    if not changed:
        return Candidate(replace(finding, decline="the rewrite changes nothing"), None)
    safe = fix.safety is Safety.SAFE and codemod.rule.safety is Safety.SAFE
    safety = Safety.SAFE if safe else Safety.UNSAFE
    edits = text_edits(tree, changed)
    return Candidate(replace(finding, safety=safety, says=fix.says, unsafe=fix.unsafe, edits=edits), fix)


def _finding(defect: Defect, codemod: Codemod, source: Source) -> Finding:
    culprit = _on_one_line(source.places.text(defect.culprit))
    return Finding(
        code=codemod.rule.code,
        rule=codemod.name,
        message=codemod.rule.message.format(**defect.facts.named(), culprit=culprit),
        span=source.places.in_characters(defect.culprit),
        evidence=tuple(_in_characters(step, source) for step in defect.evidence),
        certainty=defect.certainty,
        impact=defect.impact,
        conventions=defect.conventions,
        assumptions=defect.assumptions,
        unknowns=tuple(_placed(one, source) for one in defect.unknowns),
        condition=defect.condition,
        torch_says=defect.torch_says,
    )


def _in_characters(step: Evidence, source: Source) -> Evidence:
    """Evidence in this file with its columns in characters; another file's text is not at hand."""
    return step if step.path else replace(step, span=source.places.in_characters(step.span))


def _placed(reason: Reason, source: Source) -> Reason:
    """A reason in this file with its columns in characters; another file's text is not at hand."""
    of = _placed(reason.of, source) if reason.of is not None else None
    here = reason.span if reason.path is None else None
    return replace(reason, of=of, span=source.places.in_characters(here) if here else reason.span)


def _on_one_line(text: str) -> str:
    """A culprit's text as a sentence can quote it: a long one by its first line."""
    whole = " ".join(text.split())
    if len(whole) <= LONGEST_CULPRIT:
        return whole
    return " ".join(text.partition("\n")[0].split())[:LONGEST_CULPRIT] + " ..."
