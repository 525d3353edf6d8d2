"""What the judge says, and the facts of one recording that it says it from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from gradfix.trace.report import ESSENTIAL, Place, Recording

Word: TypeAlias = Literal[
    "flows",
    "flows partly",
    "no change",
    "worse",
    "not reproduced",
    "not reached",
    "could not run",
    "seen under torch",
    "undecided",
]
Norms: TypeAlias = "Mapping[str, float | None]"

FROZEN = "frozen"
"""The recorder's reason for a parameter that does not require a gradient."""
UNNAMED = re.compile(r"tensor\[[\d, ]*\]#\d+")
"""What the recorder calls a tensor that no variable of the program holds."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A finding that is to be judged: its rule and its lines in the text before."""

    path: str
    kind: str
    line: int
    end_line: int = 0

    def covers(self, line: int) -> bool:
        """Whether a line belongs to the finding."""
        return self.line <= line <= max(self.line, self.end_line)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judge's word on one finding, or on a whole file (kind "")."""

    path: str
    verdict: Word
    reason: str
    kind: str = ""
    line: int = 0
    before: Norms = field(default_factory=dict)
    """Parameter -> norm of the first gradient that differs after; None: no gradient, or not a finite one."""
    after: Norms = field(default_factory=dict)
    held_back: tuple[str, ...] = ()
    driver: str = ""
    """The program that gradfix wrote to come to the finding, where no run of the user's own did."""
    assumed: tuple[str, ...] = ()
    """What that program takes for granted."""

    def to_json(self) -> dict[str, Any]:
        """As the machine-readable formats carry it."""
        return {
            "filename": self.path,
            "rule": self.kind or None,
            "line": self.line or None,
            "verdict": self.verdict,
            "reason": self.reason,
            "gradients": {"before": dict(self.before), "after": dict(self.after)},
            "held_back": list(self.held_back),
            "driver": self.driver or None,
            "assumed": list(self.assumed),
        }


@dataclass(frozen=True, slots=True)
class Facts:
    """What one recording comes to."""

    recording: Recording
    defects: tuple[dict[str, Any], ...]
    norms: Norms
    """The first gradient of each parameter."""
    series: Mapping[str, Sequence[float | None]]
    """What each step found in it, or each backward where there is no step."""
    fine: frozenset[str]
    """Parameters and leaves at which a finite gradient arrived."""
    wild: frozenset[str]
    """Those at which one arrived that is not finite."""

    @property
    def missed(self) -> frozenset[str]:
        """Parameters that are to be trained, and at which no gradient has arrived."""
        reasons = self.recording["reasons"]
        return frozenset(name for name, why in reasons.items() if why != FROZEN and name not in self.fine)

    @property
    def unnamed(self) -> frozenset[str]:
        """Those that no variable of the program holds."""
        return frozenset(self.norms) - frozenset(named(self.norms))

    @property
    def to_freeze(self) -> frozenset[str]:
        """What the program means to freeze, and has not frozen."""
        return frozenset(name for defect in self.defects for name in defect["facts"].get("frozen", ()))

    @property
    def failed(self) -> bool:
        """Whether the program ended with an exception or an exit code."""
        return self.recording["error"] is not None or self.recording["how"] == "exit"

    @property
    def failure(self) -> str:
        """The exception in one line."""
        error = self.recording["error"]
        if error is None:
            return self.recording["how"]
        place = error["place"]
        where = f", line {place['line']}" if place else ""
        first = error["message"].splitlines()[0] if error["message"] else ""
        return f"{error['type']}{where}" + (f": {first[:160]}" if first else "")

    @property
    def last(self) -> int:
        """The line that the run had come to when it ended."""
        place = self._end()
        return int(place["line"]) if place is not None else 0

    def last_in(self, path: str) -> int:
        """The same, if it is in this file."""
        place = self._end()
        return int(place["line"]) if place is not None and place["file"] == path else 0

    @property
    def handed(self) -> bool:
        """Whether gradients were asked for that went to no `.grad`."""
        return any(event["event"] == "backward" and not event["error"] for event in self.recording["events"])

    def _end(self) -> Place | None:
        error = self.recording["error"]
        if error is not None:
            return error["place"]
        done = [
            event["place"] for event in self.recording["events"] if event["event"] in ("backward", "step")
        ]
        return done[-1] if done else None

    def lines(self, path: str) -> set[int]:
        """Lines of a file on which torch was called."""
        return set(self.recording["lines"].get(path, ()))

    def writes(self, path: str) -> set[int]:
        """Lines of a file that write in place on a tensor of the graph."""
        found = [event for event in self.recording["events"] if event["event"] == "write"]
        return {event["place"]["line"] for event in found if event["place"]["file"] == path}


def facts(recording: Recording) -> Facts:
    """Read a recording."""
    norms: dict[str, float | None] = {}
    fine: set[str] = set()
    for event in recording["events"]:
        for name, norm in _norms(event).items():
            if norms.get(name) is None:
                norms[name] = norm
            if norm is not None:
                fine.add(name)
    for name in recording["reasons"]:
        norms.setdefault(name, None)
    steps = [event for event in recording["events"] if event["event"] == "step"]
    series: dict[str, list[float | None]] = {}
    for event in steps or recording["events"]:
        for name, norm in _norms(event).items():
            series.setdefault(name, []).append(norm)
    defects = tuple(event for event in recording["events"] if event["event"] == "defect")
    backwards = [event["reached"] for event in recording["events"] if event["event"] == "backward"]
    wild = frozenset(name for reached in backwards for name, norm in reached.items() if norm is None)
    return Facts(recording, defects, norms, series, frozenset(fine), wild)


def side_by_side(before: Facts, after: Facts) -> tuple[Norms, Norms]:
    """The norms of both runs, taken for each parameter where they first part."""
    one = {name: before.norms[name] for name in named(before.norms)}
    other = {name: after.norms[name] for name in named(after.norms)}
    for name in one.keys() & other.keys():
        pairs = zip(before.series.get(name, ()), after.series.get(name, ()), strict=False)
        parted = next((pair for pair in pairs if pair[0] != pair[1]), None)
        if parted is not None and one[name] == other[name]:
            one[name], other[name] = parted
    return one, other


def named(names: Iterable[str]) -> list[str]:
    """Those that the user's code has a name for: the numbers of the others differ from run to run."""
    return sorted(name for name in names if not UNNAMED.fullmatch(name))


def frozen(before: Facts, after: Facts) -> frozenset[str]:
    """What was to be frozen, and is: that no gradient arrives there is what the rewrite is for."""
    reasons = after.recording["reasons"]
    return frozenset(name for name in before.to_freeze if reasons.get(name) == FROZEN)


def listed(names: Sequence[str]) -> str:
    """The first of some names, and how many more there are."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _norms(event: Mapping[str, Any]) -> dict[str, float | None]:
    if event["event"] == "backward":
        return dict(event["reached"])
    if event["event"] == "step":
        return {name: at["norm"] for name, at in event["parameters"].items()}
    return {}


def cannot(recording: Recording, seconds: float, memory: float) -> str:
    """Why a run cannot be judged; empty when it can."""
    how, error = recording["how"], recording["error"]
    if unwatched(recording):
        return unwatched(recording)
    if how == "time":
        return "; ".join([f"still running after {seconds:g} s", *recording["apart"]])
    if how == "memory":
        return f"held more than {memory / 1e9:g} GB"
    if how == "signal":
        return "killed by a signal (a crash in native code, or the system)"
    return outside(error["type"], error["message"]) if error is not None else ""


def unwatched(recording: Recording) -> str:
    """Why the recorder, and not the program, is to blame that nothing can be said; empty when it is not."""
    how, blind = recording["how"], recording["blind"]
    if how in ("no torch", "broken"):
        return recording["stderr"].strip() or how
    if how == "spent":
        return "the time for all runs is used up (--time-limit)"
    if how == "garbled":
        return "the program wrote into the channel of the recorder"
    if how == "killed":
        return "the recorder was not heard to the end: the program closed its channel, or left in native code"
    lost = [f"{part} ({why})" for part, why in blind.items() if part in ESSENTIAL]
    return f"the recorder failed under torch {recording['torch']}: {listed(lost)}" if lost else ""


def unseen(recording: Recording) -> str:
    """The parts of torch that the recorder could not look into."""
    return listed([f"{part} ({why})" for part, why in recording["blind"].items() if part not in ESSENTIAL])


def outside(kind: str, message: str) -> str:
    """A failure that has nothing to do with gradients, in the words of the exception."""
    text = f"{kind}: {message.splitlines()[0][:200] if message else ''}".rstrip(": ")
    if kind in ("ImportError", "ModuleNotFoundError"):
        return f"an import failed ({text})"
    if kind == "SyntaxError":
        return f"it does not compile ({text})"
    if kind in ("FileNotFoundError", "NotADirectoryError", "IsADirectoryError"):
        return f"missing data ({text})"
    if kind == "EOFError":
        return f"it reads standard input, which is closed ({text})"
    if kind in ("MemoryError",) or "not enough memory" in message:
        return f"not enough memory ({text})"
    if kind in ("ConnectionError", "URLError", "gaierror", "HTTPError", "OSError", "PermissionError"):
        return f"held back or out of reach ({text})"
    return ""
