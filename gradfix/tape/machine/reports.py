"""Defects as they are found, each told once, with the places and conditions that explain it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Generic, TypeAlias, TypedDict, TypeVar

from gradfix.defects import KINDS, Assumption, Convention, Defect, Evidence, Role
from gradfix.defects.facts import Facts
from gradfix.defects.ordered import Ordered
from gradfix.defects.reasons import Reason
from gradfix.defects.records import NonScalar
from gradfix.defects.written import Overwritten
from gradfix.tape.domain.graph import Tensor
from gradfix.tape.domain.paths import ALWAYS, Arm, Settled, contradicts, follows, simplest, tested
from gradfix.tape.domain.values import NOTHING, Foreign, Unknown
from gradfix.tape.domain.within import Within
from gradfix.tape.machine.handled import Handled
from gradfix.tape.machine.here import span_of
from gradfix.tape.machine.sought import at_odds
from gradfix.tape.machine.telling import tellable, told
from gradfix.tape.machine.terms import Terms, denies_tensor, says_empty
from gradfix.tape.machine.unrecorded_deeds import UnrecordedDeeds
from gradfix.tape.machine.witness import possible

if TYPE_CHECKING:
    from gradfix.defects import Impact, Span
    from gradfix.tape.domain.graph import Node
    from gradfix.tape.domain.paths import Key, Path
    from gradfix.tape.domain.values import Lean, Place
    from gradfix.tape.domain.why import Why
    from gradfix.tape.machine.account import Account

F = TypeVar("F", bound=Facts)
Where: TypeAlias = "tuple[str, Span]"
SUREST = ("certain", "likely", "suspect")
DEEP = 3
"""How many parts of parts a reason tells; then what they are all of."""


@dataclass(frozen=True, slots=True)
class Draft(Generic[F]):
    """What will be a defect, or will not: part of it is known at the end only."""

    kind: str
    culprit: Span
    evidence: tuple[Evidence, ...]
    facts: F
    impact: Impact
    lean: Lean
    when: Path
    says: str

    def defect(self, facts: Facts, more: Lean = NOTHING) -> Defect:
        """The defect, with all that is known of it in the end, and what it leans on only then."""
        lean = self.lean | more
        return Defect(self.kind, self.culprit, self.evidence, facts, self.impact, lean, "", self.says)


class Findings:
    """What was found in one file by all that was executed of it, and the text that findings quote."""

    def __init__(self, main: str, lines: Sequence[bytes]) -> None:
        self.main = main
        self.sources = {main: lines}
        """The lines of each file that was read."""
        self.found: dict[tuple[str, Span], Defect] = {}
        self.paths: dict[tuple[str, Span], dict[Path, Lean]] = {}
        self.closed: set[tuple[str, Span]] = set()
        """What is claimed where nobody may come at all."""
        """The paths on which each of them happens, in the order in which they were met."""
        self.silences: dict[tuple[Span, str], Node | Why | None] = {}
        """What was looked at and couldn't be decided, in words, and why, or what that was made of."""
        self.deeds: dict[Span, tuple[str, Why | None]] = {}
        """The backwards, steps and writes that were come to: what may not be known of each, and why."""
        self.unreduced: dict[Where, dict[Where, None]] = {}
        """Where loss modules are called that were told not to reduce, by where they are built."""
        self.texts: dict[Key, str] = {}
        """How path conditions are called where they are told."""
        self.tests: dict[Key, ast.AST] = {}
        """Where path conditions are tested: the same place tests another value in each turn of a loop."""
        self.handled = Handled()
        """What is tried in each file where a handler takes whatever torch says of it."""
        self.sifted: dict[Span, None] = {}
        """The loops over what tests let through that aren't known: what is in one may be in no other."""
        self.stirred: dict[int, Value] = {}
        """What is filled and emptied by code of which nobody knows when it runs, by identity."""
        self.terms = Terms()
        """What tests and the values that they ask were made of."""
        self.unrecorded = UnrecordedDeeds()
        self.recording: list[Value] = []
        """What was answered where somebody asked for the grad mode and nobody knew it."""
        self.unlikely: set[tuple[Key, bool]] = set()
        """The outcomes of tests by which two values would be one that are called differently."""

    def told(self) -> list[Defect]:
        """The defects in the order of their places, each with the condition under which it happens."""
        order = sorted(self.found, key=lambda key: (key[1], key[0]))
        return [
            replace(
                self.found[key],
                condition=told(self.texts, self.paths[key]),
                lean=self._leaning(key),
                facts=self.unrecorded.told(self._asked(self.found[key].facts), key[1]),
            )
            for key in order
        ]

    def _leaning(self, key: tuple[str, Span]) -> Lean:
        """What a defect leans on, by all paths on which it happens: where it does so whichever way their
        tests come out, these need no witness."""
        lean, ways = self.found[key].lean, self.paths[key]
        if not tellable(self.texts, *ways):
            return lean | {Assumption.CHOSEN_APART}
        rest = lean - {Assumption.CHOSEN_AT_ONCE}
        alike = [tested(way) for way, other in ways.items() if other - {Assumption.CHOSEN_AT_ONCE} == rest]
        whatever = key not in self.closed and not all(simplest(alike))
        return rest if whatever else lean

    def _asked(self, facts: Facts) -> Facts:
        """The facts with all calls of the losses that they are about."""
        if not isinstance(facts, NonScalar) or not facts.built:
            return facts
        calls = {one: None for built in facts.built for one in self.unreduced.get((self.main, built), ())}
        here = tuple(span for file, span in calls if file == self.main)
        return replace(facts, asked=here, elsewhere=facts.elsewhere or len(here) < len(calls))

    def reason(self, why: Why, deep: int = DEEP) -> Reason:
        """A reason as a person reads it: with the text and the line of what isn't known."""
        of, place = why.of, why.place
        while of is not None and deep == 0 and of.of is not None:
            of = of.of
        inner = self.reason(of, max(deep - 1, 0)) if of is not None else None
        if place is None:
            return Reason(why.what, why.name, of=inner)
        foreign = isinstance(place, Foreign)
        node, path = (place.node, place.path) if isinstance(place, Foreign) else (place, self.main)
        name = why.name
        if not name and isinstance(node, ast.Call):
            name = f"`{self.text(node.func, path)}`"
        return Reason(why.what, name, span_of(node), path if foreign else None, inner)

    def where(self, place: ast.AST | Foreign) -> Where:
        """A place by its file and span."""
        if isinstance(place, Foreign):
            return place.path, span_of(place.node)
        return self.main, span_of(place)

    def text(self, node: ast.AST, file: str) -> str:
        """The source text of a node of a file, on one line."""
        first, last = node.lineno - 1, node.end_lineno - 1  # type: ignore[attr-defined]
        lines = list(self.sources.get(file, ())[first : last + 1])
        if not lines:
            return ast.unparse(node)
        lines[-1] = lines[-1][: node.end_col_offset]  # type: ignore[attr-defined]
        lines[0] = lines[0][node.col_offset :]  # type: ignore[attr-defined]
        return " ".join(line.strip().decode("utf-8", "replace") for line in lines)


if TYPE_CHECKING:
    from typing_extensions import Unpack

    from gradfix.tape.domain.graph import Node
    from gradfix.tape.domain.values import Value
    from gradfix.tape.machine.here import Here


ASKS = frozenset({Role.ASKED, Role.REFUSED})
"""What torch is asked for and refuses, where nothing is to be learnt from it: with a handler, a question."""


class Scoped(TypedDict, total=False):
    """What differs inside of something only."""

    granted: Lean
    repeat: bool
    ran: list[tuple[int, int]]
    tried: list[Span]


class Reports:
    """What is reported from what is being executed."""

    def __init__(self, findings: Findings, here: Here) -> None:
        self.findings = findings
        self.here = here
        self.trail = here.trail
        self.repeat = False
        """Whether this is a later turn of a loop that isn't known to have one (convention E)."""
        self.granted: Lean = NOTHING
        """What is taken for granted of what runs now, and of all that comes of it."""
        self.reported: set[tuple[str, Span]] = set()
        """What was reported from here, and where."""
        self.ran: list[tuple[int, int]] = []
        """The functions that the module itself has run, while others are entered: their lines ran without
        this defect, and it takes convention G that somebody runs them otherwise."""
        self.tried: list[Span] = []
        """What had been begun when it raised what is being handled: it isn't known how far it came."""

    def within(self, **now: Unpack[Scoped]) -> Within:
        """A block in which this is so, and as it was after it."""
        return Within(self, self.trail, now)

    def lean_on(self, lean: Lean) -> None:
        """From here on, to the end of what is running, everything leans on this."""
        self.granted = self.granted | lean

    def span(self, place: Place) -> Span | None:
        """A place's span as a fact; None in another file."""
        return None if place is None or isinstance(place, Foreign) else span_of(place)

    def evidence(self, steps: Iterable[tuple[Place, Role]]) -> tuple[Evidence, ...]:
        """The steps whose place is known, each once."""
        seen: dict[tuple[Span, Role, str | None], None] = {}
        for place, role in steps:
            if role is Role.BACKWARD and isinstance(place, ast.Return):
                role = Role.RETURNED
            if isinstance(place, Foreign):
                seen[span_of(place.node), role, place.path] = None
            elif place is not None:
                seen[span_of(place), role, None] = None
        return tuple(Evidence(span, role, path) for span, role, path in seen)

    def report(
        self,
        kind: str,
        culprit: Place,
        steps: Sequence[tuple[Place, Role]],
        facts: Facts,
        *,
        impact: Impact | None = None,
        lean: Lean = NOTHING,
        when: Path = ALWAYS,
        says: str = "",
        account: Account | None = None,
        along: Path = ALWAYS,
    ) -> None:
        """Note a defect, unless its culprit is in another file, where it will be found."""
        if along and not possible(self.findings.terms, when | along):
            lean = lean | {Assumption.CHOSEN_AT_ONCE}
        draft = self.draft(
            kind, culprit, steps, facts, impact=impact, lean=lean, when=when, says=says, account=account
        )
        if draft is not None:
            self.note(draft, facts)

    def draft(
        self,
        kind: str,
        culprit: Place,
        steps: Sequence[tuple[Place, Role]],
        facts: F,
        *,
        impact: Impact | None = None,
        lean: Lean = NOTHING,
        when: Path = ALWAYS,
        says: str = "",
        account: Account | None = None,
    ) -> Draft[F] | None:
        """What is known by now of a defect; None where its culprit is in another file.

        What says that something is missing needs an account of all that could have supplied it.
        """
        if KINDS[kind].absence and account is None:
            raise TypeError(f"{kind} is claimed without an account")
        if culprit is None or isinstance(culprit, Foreign):
            at_home = [place for place, _ in steps if isinstance(place, ast.AST)]
            if culprit is not None and at_home:
                self.silence(at_home[-1], f"what breaks this is in {culprit.path}, which is read by itself")
            return None
        span = span_of(culprit)
        if self.chosen_twice(when) or not when.isdisjoint(self.findings.unlikely):
            lean = lean | {Assumption.CHOSEN_ALIKE}
        if self.chosen_apart(when):
            lean = lean | {Assumption.CHOSEN_APART}
        way = when | self.here.path
        if not self._may_be(way):
            lean = lean | {Assumption.CHOSEN_AT_ONCE}
            if not self._may_be(self.here.path - self.here.assumed):
                self.findings.closed.add((kind, span))
        modes = {("true", id(one)) for one in self.findings.recording}
        if Convention.G in lean | self._entered(span) and any(
            key in modes and not holds for key, holds in way
        ):
            lean = lean | {Assumption.CHOSEN_AT_ONCE}
        if self.findings.stirred and any(self._asks_stirred(key) for key, _ in way):
            lean = lean | {Assumption.CHOSEN_AT_ONCE}
        if len({one for one in self.findings.sifted for step in steps if self._lies_in(step, one)}) > 1:
            lean = lean | {Assumption.CHOSEN_AT_ONCE}
        if self.tried and any(map(self._tried, steps)):
            lean = lean | {Assumption.TRIED_FIRST}
        if steps and steps[-1][1] in ASKS and self.handled(steps[-1][0]):
            lean = lean | {Assumption.NOT_HANDLED}
        if any(says_empty(self.findings.terms, key, holds) for key, holds in way):
            lean = lean | {Assumption.NOTHING_IS_LEARNT}
        if account is None or account.whole:
            self.reported.add((kind, span))
        if account is not None:
            lean = lean | account.lean
        return Draft(
            kind,
            span,
            self.evidence(steps),
            facts,
            impact or KINDS[kind].impact,
            lean | self._entered(span),
            when,
            says,
        )

    def _may_be(self, path: Path) -> bool:
        """Whether a path has a witness, nobody refuses it, and what is backpropagated on it is a tensor."""
        terms = self.findings.terms
        if not possible(terms, path) or any(follows(path, one) for one in terms.refused):
            return False
        denied = (denies_tensor(terms, key, holds) for key, holds in path)
        tensors = (one.tensor if isinstance(one, Unknown) else one for one in denied)
        nodes = (id(one.node) for one in tensors if isinstance(one, Tensor))
        ways = (way for one in nodes if one in terms.tensors for way in terms.tensors[one][1])
        return all(contradicts(path, way) for way in ways)

    def _asks_stirred(self, key: Key) -> bool:
        """Whether a test asks what is in something that others fill: it comes out as they have done."""
        term = self.findings.terms.tests.get(key)
        return term is not None and any(id(one) in self.findings.stirred for one in term.operands)

    def chosen_twice(self, when: Path) -> bool:
        """Whether a path takes one test to come out alike for two different values.

        Which values a loop meets one after the other is the program's own business: the letters of a string
        that chooses layers, masks that might all be empty.
        """
        tests = self.findings.tests
        places = [(id(tests[key]), holds) for key, holds in when if key in tests]
        places += [(id(key.chain.first), holds) for key, holds in when if type(key) is Arm]
        return len(places) > len(set(places)) or any(
            bool(ways) and all(len(way) > 1 and self.chosen_twice(way) for way in ways)
            for ways in [key.yes if holds else key.no for key, holds in when if type(key) is Settled]
        )

    def chosen_apart(self, when: Path) -> bool:
        """Whether a path takes two calls that read alike, where each is tested, to answer differently, or
        is made of nothing but tests that do, from turn to turn."""
        texts, tests = self.findings.texts, self.findings.tests
        if not tellable(texts, when) or at_odds(tests, when):
            return True
        calls = [(texts.get(key), key, holds) for key, holds in when if type(tests.get(key)) is ast.Call]
        return any(
            text is not None and text == other and holds is not said and tests[key] is not tests[one]
            for (text, key, holds), (other, one, said) in combinations(calls, 2)
        )

    def _tried(self, step: tuple[Place, Role]) -> bool:
        """Whether a step of what is claimed while something is handled is in what was tried."""
        return any(self._lies_in(step, whole) for whole in self.tried)

    def _lies_in(self, step: tuple[Place, Role], whole: Span) -> bool:
        span = self.span(step[0])
        return span is not None and whole.line <= span.line <= whole.end_line

    def handled(self, raises: Place) -> bool:
        """Whether torch raises where somebody counts on it."""
        node = raises.node if isinstance(raises, Foreign) else raises
        path = raises.path if isinstance(raises, Foreign) else self.findings.main
        tried = self.findings.handled.within(path) if node is not None else []
        span = span_of(node) if node is not None and tried else None
        return span is not None and any(
            whole.line <= span.line and span.end_line <= whole.end_line for whole in tried
        )

    def _entered(self, span: Span) -> Lean:
        """What everything that is claimed of a place from here leans on."""
        lean = self.granted
        if self.repeat:
            lean = lean | {Convention.E}
        if any(first <= span.line <= last for first, last in self.ran):
            lean = lean | {Convention.G}
        return lean

    def note(self, draft: Draft[F], facts: Facts, more: Lean = NOTHING) -> None:
        """Note a defect; of several of a kind at one place, the first of the surest."""
        defect = draft.defect(facts, more)
        key = (defect.kind, defect.culprit)
        known = self.findings.found.get(key)
        surer = SUREST.index(known.certainty) - SUREST.index(defect.certainty) if known is not None else 1
        if surer > 0:
            self.findings.paths[key] = {}
        if surer >= 0:
            self.findings.paths[key][draft.when] = defect.lean
        if known is not None and surer <= 0:
            defect = also_touched(also_runs(known, defect.evidence), defect.facts)
        self.findings.found[key] = defect

    def silence(self, place: Place, reason: str, made_of: Node | Why | None = None) -> None:
        """Note why nothing is said about a place; of what is made of the unknown, the end says of which."""
        if place is not None and not isinstance(place, Foreign):
            self.findings.silences.setdefault((span_of(place), reason), made_of)

    def text(self, node: ast.AST, file: str = "") -> str:
        """The source text of a node of the running file, on one line."""
        return self.findings.text(node, file or self.here.file)


def also_touched(defect: Defect, facts: Facts) -> Defect:
    """A defect with what touches its leaves, or made its loss, when it happens once more."""
    both = _both(defect.facts, facts)
    return defect if both == defect.facts else replace(defect, facts=both)


def _both(one: Facts, other: Facts) -> Facts:
    if isinstance(one, Ordered) and isinstance(other, Ordered):
        return one.again(other)
    if isinstance(one, Overwritten) and isinstance(other, Overwritten):
        return one.again(other)
    if isinstance(one, NonScalar) and isinstance(other, NonScalar):
        return one.again(other)
    return one


def also_runs(defect: Defect, evidence: Iterable[Evidence]) -> Defect:
    """A defect with one more backward that meets it, where that is another one."""
    more = tuple(one for one in evidence if one.role is Role.BACKWARD and one not in defect.evidence)
    few = len(defect.evidence) < 8
    return replace(defect, evidence=defect.evidence + more) if more and few else defect
