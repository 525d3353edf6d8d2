"""Tracebacks out of a paste: their frames, what was raised, and anomaly mode's second traceback."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from gradfix.why.frames import ARROW, FAILING, UNDERLINED, Frame, frame_in

HEADER = re.compile(r"Traceback \(most recent call last\)")
FORWARD = re.compile(
    r"(?:Error detected in (?P<op>\w+)\.?.*)?Traceback of forward call that (?P<what>caused the "
    r"error|induced)"
)
RAISED = re.compile(
    r"^(?P<indent>\s*)(?:E\s{2,})?\*{0,2}(?P<error>(?:[A-Za-z_]\w*\.)*\w*(?:Error|Exception|Interrupt))"
    r"(?::\s*(?P<message>.*)|\s*)$"
)
REPLICA = re.compile(r"^Caught \w+ in .*\b(?:replica|worker)\b")
"""What DataParallel and loaders say before they quote the traceback of another thread or process."""
CHAINED = re.compile(r"^\s*(?:During handling of|The above exception was)")


@dataclass(frozen=True, slots=True)
class Trace:
    """One failure as it was printed."""

    frames: tuple[Frame, ...]
    """From the outermost in."""
    forward: tuple[Frame, ...] = ()
    """Where the operation was called whose backward failed, as anomaly mode tells it."""
    operation: str = ""
    """That operation, by the name of its node."""
    error: str = ""
    message: str = ""

    @property
    def said(self) -> str:
        """What was raised, on one line."""
        return f"{self.error}: {self.message}" if self.message else self.error


def traces(lines: Iterable[str]) -> list[Trace]:
    """All failures of a paste in their order, each once."""
    reading = Reading()
    for line in lines:
        reading.take(line)
    reading.end()
    return list(dict.fromkeys(reading.done))


@dataclass
class Reading:
    """How far a paste has been read."""

    done: list[Trace] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    forward: list[Frame] = field(default_factory=list)
    into: list[Frame] = field(default_factory=list)
    """The frames that are being read."""
    operation: str = ""
    error: str = ""
    message: list[str] = field(default_factory=list)
    expecting: bool = False
    """Whether the line behind a place may be its code."""
    pointed: str = ""
    """The code that pytest quotes before it names the place."""

    def __post_init__(self) -> None:
        self.into = self.frames

    def take(self, line: str) -> None:
        """Read one more line."""
        if self._begins(line) or self._places(line) or self._quotes(line):
            return
        raised = RAISED.match(line)
        if raised:
            self._raised(raised)
        elif self.error and line.strip():
            self.message.append(line.strip())
        elif self.error:
            self._close()

    def _begins(self, line: str) -> bool:
        forward, header = FORWARD.search(line), HEADER.search(line)
        if forward:
            if raised := RAISED.match(line[: forward.start()]):
                self._raised(raised)
            self._close()
            self.into = []
            if forward["what"] != "induced":
                self.forward, self.operation = self.into, forward["op"] or ""
        elif header or CHAINED.match(line):
            if REPLICA.search(" ".join(self.message)):
                self.error = ""
            self.end()
        self.expecting = False if forward or header else self.expecting
        return bool(forward or header or CHAINED.match(line))

    def _places(self, line: str) -> bool:
        frame = frame_in(line)
        if frame is None:
            return False
        self._close()
        pointed, self.pointed = self.pointed, ""
        self.into.append(Frame(frame.path, frame.line, frame.function, pointed))
        self.expecting = not pointed
        return True

    def _quotes(self, line: str) -> bool:
        """Whether a line quotes the code of a place."""
        arrow, failing = ARROW.match(line), FAILING.match(line)
        if arrow and self.into:
            self.into[-1] = self.into[-1].pointing(arrow)
            self.expecting = False
        elif failing:
            self.pointed = failing["code"].strip()
        elif self.expecting and line.strip() and not _unindented_error(line):
            last = self.into[-1]
            if not UNDERLINED.match(line) and not re.match(r"^\s*\d+\s", line):
                self.into[-1] = Frame(last.path, last.line, last.function, line.strip())
            self.expecting = bool(re.match(r"^\s*\d+\s", line))
        else:
            return bool(UNDERLINED.match(line))
        return True

    def _raised(self, raised: re.Match[str]) -> None:
        if self.error and not self.message:
            self.error = ""
        self._close()
        self.error = raised["error"].rpartition(".")[2]
        if raised["message"]:
            self.message.append(raised["message"].strip("* "))
        self.expecting = False

    def _close(self) -> None:
        """End what is being read where something was raised."""
        if not self.error or not (self.frames or self.message):
            self.error, self.message = "", []
            return
        if self.pointed and not self.frames:
            self.frames.append(Frame("", 0, "", self.pointed))
        said, self.pointed = " ".join(self.message), ""
        self.done.append(Trace(tuple(self.frames), tuple(self.forward), self.operation, self.error, said))
        self.frames, self.forward, self.operation = [], [], ""
        self.into, self.error, self.message = self.frames, "", []

    def end(self) -> None:
        """End what is being read, also where it was cut off."""
        self._close()
        if self.frames:
            self.done.append(Trace(tuple(self.frames), tuple(self.forward), self.operation))
            self.frames, self.forward, self.operation = [], [], ""
        if self.forward and self.done and not self.done[-1].forward and self.into is self.forward:
            self.done[-1] = replace(self.done[-1], forward=tuple(self.forward), operation=self.operation)
            self.forward, self.operation = [], ""
        self.into = self.frames


def _unindented_error(line: str) -> bool:
    raised = RAISED.match(line)
    return raised is not None and not raised["indent"]
