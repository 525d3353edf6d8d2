"""What the tape says of a text, and what it says more when it knows less."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias
from unittest.mock import patch

from gradfix.defects import Certainty, Convention, Defect, Role
from gradfix.source import Source, parse
from gradfix.tape import entries
from gradfix.tape.domain import alternatives, trail
from gradfix.tape.domain.values import Value
from gradfix.tape.entries import analyse
from gradfix.tape.interpreter.conditions import Verdict, condition
from gradfix.tape.interpreter.interpreter import Interpreter
from gradfix.tape.interpreter.limits import Resolver
from gradfix.tape.machine.reports import Findings
from gradfix.tape.python import control, loops

from .edits import Edited, Text

Sort: TypeAlias = Literal["appeared", "surer", "told otherwise", "limit met", "way opened"]
"""How more was said. `told otherwise`: a finding that overlaps, or that is among what leads to this one, or
the same failure, was there before, by another rule or with another culprit. `limit met`: the text as it was
says it too if more alternatives are kept apart, at once or in all: what was forgotten leaves fewer. `way
opened`: on a path that was known not to be taken, so that nothing was said of it, or behind a crash that was
certain. The last two are allowed."""
SORTS: tuple[Sort, ...] = ("appeared", "surer", "told otherwise", "limit met", "way opened")
ALLOWED: frozenset[Sort] = frozenset({"limit met", "way opened"})
MORE_ALTERNATIVES = (5, 6, 8)
"""How many are kept apart to see whether that is what has silenced a text."""
MORE_SPREAD = 100_000
"""How many may be kept apart in all, to see the same."""
SUREST: tuple[Certainty, ...] = ("certain", "likely", "suspect")
BACKWARDS = frozenset({Role.BACKWARD, Role.RETURNED, Role.WITHOUT, Role.BACKWARD_HERE, Role.BACKWARD_NEEDS})
COMPARED = re.compile(r" [!=]= .*")
Where: TypeAlias = "tuple[int, int]"
"""Where a culprit begins and ends in the text as it was, in bytes."""


@dataclass(frozen=True, slots=True)
class More:
    """A finding that is there, or is surer, because less is known."""

    sort: Sort
    defect: Defect
    where: Where
    chain: tuple[Where, ...] = ()
    """The places that it is explained by."""
    behind: bool = False
    """Whether the text as it was had crashed before it came to where this one shows."""

    @property
    def leans(self) -> str:
        """How sure it claims to be."""
        return self.defect.certainty + "".join(f" {each}" for each in sorted(self.defect.conventions))


def read(path: str, content: bytes) -> Source | None:
    """A text as the tape reads it, without a byte order mark."""
    source = parse(path, content)
    return source if isinstance(source, Source) and source.content == source.text.encode() else None


def told(source: Source, resolve: Resolver) -> tuple[Defect, ...]:
    """What the tape says, but for matters of style, which are not listed unless somebody asks."""
    return tuple(one for one in analyse(source, resolve).defects if one.impact != "style")


def more(before: Iterable[Defect], edited: Edited, after: Iterable[Defect]) -> Iterator[More]:
    """What is said only or more surely after something was forgotten."""
    as_it_was = Edited(edited.text, ())
    after = tuple(after)
    known = [(one, as_it_was.before(one.culprit)) for one in before]
    still = {(one.kind, edited.before(one.culprit)) for one in after if one.certainty == "certain"}
    crashed = Crashed(edited.text, [one for one, place in known if (one.kind, place) not in still])
    for defect in after:
        if defect.certainty == "suspect":
            continue
        where = edited.before(defect.culprit)
        chain = tuple(_chain(edited, defect))
        behind = crashed.before(max(chain, key=lambda one: one[1]))
        old = next((one for one, place in known if (one.kind, place) == (defect.kind, where)), None)
        if old is None:
            same = any(
                _overlap(place, where) or _same_failure(_chain(as_it_was, one), _chain(edited, defect))
                for one, place in known
            )
            yield More("told otherwise" if same else "appeared", defect, where, chain, behind)
        elif SUREST.index(defect.certainty) < SUREST.index(old.certainty):
            yield More("surer", defect, where, chain, behind)


Chain: TypeAlias = "dict[Where, str]"


def _chain(edited: Edited, defect: Defect) -> Chain:
    """The places that a finding is explained by, and what each of them is in it."""
    own = {edited.before(one.span): str(one.role) for one in defect.evidence if one.path is None}
    return {edited.before(defect.culprit): "culprit", **own}


def _same_failure(one: Chain, other: Chain) -> bool:
    """Whether two findings share more than the backward that they are about."""
    shared = one.keys() & other.keys()
    return any(not {one[where], other[where]} <= BACKWARDS for where in shared)


def _overlap(one: Where, other: Where) -> bool:
    return one[0] < other[1] and other[0] < one[1]


class Crashed:
    """The crashes that were certain, whatever is tested, and aren't any more: nothing behind them ran."""

    def __init__(self, text: Text, gone: Sequence[Defect]) -> None:
        as_it_was = Edited(text, ())
        self.text = text
        self.chains = [
            [as_it_was.before(step.span) for step in one.evidence if step.path is None]
            for one in gone
            if (one.impact, one.certainty, one.condition) == ("crashes", "certain", "")
        ]

    def before(self, where: Where) -> bool:
        """Whether one of them stands before a place, in the same code."""
        return any(self._stops(chain, where) for chain in self.chains)

    def _stops(self, chain: Sequence[Where], where: Where) -> bool:
        """Whether who comes to a place has come by what raised: in the first turn of a loop already, if all
        that led to it stands in there; and nobody has caught it."""
        raised = max(chain, key=lambda one: one[1], default=where)
        if raised[1] > where[0] or self._around(raised, CODE) != self._around(where, CODE):
            return False
        shared = self._around(raised, LOOPS) & self._around(where, LOOPS)
        inside = all(shared <= self._around(each, LOOPS) for each in chain) and [*chain] == sorted(chain)
        left = self._around(raised, WITHS) - self._around(where, WITHS)
        return (inside or not shared) and not left and not self._around(raised, TRIES)

    def _around(self, where: Where, kinds: tuple[type[ast.AST], ...]) -> set[Where]:
        """The statements of some kinds that a place stands in."""
        spans = [(self.text.start(one), self.text.end(one)) for one in self._blocks if isinstance(one, kinds)]
        return {(start, end) for start, end in spans if start <= where[0] < end}

    @cached_property
    def _blocks(self) -> list[ast.stmt]:
        walked = ast.walk(ast.parse(self.text.content))
        return [one for one in walked if isinstance(one, (*CODE, *LOOPS, *WITHS, *TRIES))]


CODE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
WITHS = (ast.With, ast.AsyncWith)
TRIES = (ast.Try,)


class Ways:
    """What of a text is evaluated when the tape plays it, and which of its tests are open."""

    def __init__(self, source: Source, resolve: Resolver) -> None:
        self.text = Text(source.content)
        self.reached: set[int] = set()
        self.once: set[Where] = set()
        """The loops that are known to have one turn."""
        self.open: set[str] = set()
        self.decided: set[str] = set()
        """What was tested somewhere and known: with a flag that one object has and another one hasn't."""
        evaluate, begin, decide, turn = Interpreter.eval, Findings.__init__, condition, loops._each_turn
        kept: list[Findings] = []

        def noting(vm: Interpreter, node: ast.expr) -> object:
            if vm.here.at_home:
                self.reached.add(self.text.start(node))
            return evaluate(vm, node)

        def keeping(findings: Findings, main: str, lines: Sequence[bytes]) -> None:
            begin(findings, main, lines)
            kept.append(findings)

        def deciding(vm: Interpreter, node: ast.expr) -> Verdict:
            verdict = decide(vm, node)
            if verdict[0] is not None:
                self.decided |= {ast.unparse(one) for one in ast.walk(node) if isinstance(one, ast.expr)}
            return verdict

        def turning(
            vm: Interpreter,
            node: ast.For | ast.AsyncFor | ast.While,
            turns: Sequence[Value | None],
            certain: bool,
            exact: bool,
        ) -> tuple[int, str | None]:
            if vm.here.at_home:
                loop = self.text.start(node), self.text.end(node)
                (self.once if exact and len(turns) == 1 else several).add(loop)
            return turn(vm, node, turns, certain, exact)

        several: set[Where] = set()
        with (
            patch.object(loops, "_each_turn", turning),
            patch.object(Interpreter, "eval", noting),
            patch.object(Findings, "__init__", keeping),
            patch.object(control, "condition", deciding),
        ):
            analyse(source, resolve)
        self.once -= several
        self.open |= {text for findings in kept for text in findings.texts.values()}

    def known(self, one: More) -> bool:
        """Whether the tape had played the path that a finding is on, and no crash ended it."""
        if one.behind:
            return False
        first, _ = one.where
        if Convention.E in one.defect.lean and any(start <= first < end for start, end in self.once):
            return False  # in a second turn, of which it was known that there is none
        reached = self._among(self.reached, one.where) and not any(map(self._passed_by, one.chain))
        tests = [test for test in one.defect.condition.split(" and ") if test]
        if one.sort == "surer" and any(self._subject(test) in self.decided for test in tests):
            return False  # less sure elsewhere, and known not to be so in what runs
        return reached and all(map(self._open, tests))

    @staticmethod
    def _among(places: Iterable[int], where: Where) -> bool:
        """Whether one of some places is within another one."""
        first, last = where
        return any(first <= place < max(last, first + 1) for place in places)

    def _passed_by(self, where: Where) -> bool:
        """Whether nothing that is evaluated at a place ever was."""
        return self._among(self._evaluated, where) and not self._among(self.reached, where)

    @cached_property
    def _evaluated(self) -> list[int]:
        walked = ast.walk(ast.parse(self.text.content))
        return [self.text.start(one) for one in walked if isinstance(one, ast.expr)]

    def _open(self, test: str) -> bool:
        """Whether a test was undecided: a comparison is noted by what it compares."""
        subject = test.removeprefix("not ")
        return subject in self.open or self._subject(test) in self.open

    @staticmethod
    def _subject(test: str) -> str:
        return COMPARED.sub("", test.removeprefix("not "))


def sorted_out(found: list[More], source: Source, resolve: Resolver) -> list[More]:
    """Tells apart what was found on paths that were known not to be taken."""
    if not found:
        return []
    ways = Ways(source, resolve)
    known = [one if ways.known(one) else More("way opened", one.defect, one.where) for one in found]
    if all(one.sort in ALLOWED for one in known):
        return known
    wider = list(_with_more_alternatives(source, resolve))
    return [
        More("limit met", one.defect, one.where) if _as_sure(one, wider) and one.sort not in ALLOWED else one
        for one in known
    ]


def _with_more_alternatives(source: Source, resolve: Resolver) -> Iterator[tuple[Where, Defect]]:
    """What the tape says of a text as it is where more alternatives are kept apart."""
    as_it_is = Edited(Text(source.content), ())
    wider = [(most, entries.SPREAD_FLOOR) for most in MORE_ALTERNATIVES]
    for most, floor in [*wider, (alternatives.LIMIT, MORE_SPREAD)]:
        with (
            patch.object(trail, "LIMIT", most),
            patch.object(alternatives, "LIMIT", most),
            patch.object(entries, "SPREAD_FLOOR", floor),
        ):
            yield from ((as_it_is.before(one.culprit), one) for one in told(source, resolve))


def _as_sure(one: More, wider: Iterable[tuple[Where, Defect]]) -> bool:
    """Whether the same is among these, no less sure."""
    most = SUREST.index(one.defect.certainty)
    return any(
        (where, other.kind) == (one.where, one.defect.kind) and SUREST.index(other.certainty) <= most
        for where, other in wider
    )
