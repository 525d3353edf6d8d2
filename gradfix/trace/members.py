"""The processes of a run besides the first: what they have said, and whether all have been seen enough."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import tempfile
import time
from typing import Any

from gradfix.trace.children import SAID, STANDS

MOST_SAID = 64_000_000
LATE = 5.0
"""For how many seconds a process that does not train yet is waited for when the others are done."""
FRAME = re.compile(r'  File "(.+)", line (\d+) in ')
TRAINS = frozenset({"backward", "step", "update"})


def lines(said: bytes, token: str) -> tuple[list[dict[str, Any]], bool]:
    """The events that came through a channel, and whether something else did."""
    all_lines, mark = said.split(b"\n")[:-1], token.encode()
    own = [line.removeprefix(mark) for line in all_lines if line.startswith(mark)]
    try:
        return [json.loads(line) for line in own], len(own) < len(all_lines)
    except ValueError:
        return [], True


class Member:
    """One process, as far as it has been heard."""

    def __init__(self, path: str, token: str) -> None:
        self.path = path
        self.token = token
        self.read = 0
        self.rest = b""
        self.events: list[dict[str, Any]] = []
        self.garbled = False

    def listen(self) -> None:
        """What came since."""
        with contextlib.suppress(OSError), open(self.path, "rb") as file:
            file.seek(self.read)
            said = file.read(max(MOST_SAID - self.read, 0))
            self.read += len(said)
            whole, newline, self.rest = (self.rest + said).rpartition(b"\n")
            events, garbled = lines(whole + newline, self.token)
            self.events += events
            self.garbled = self.garbled or garbled

    def stands(self) -> str:
        """The line that its first thread stood in when the time was nearly up; empty: nobody knows."""
        from gradfix.trace.places import Places

        with (
            contextlib.suppress(OSError),
            open(self.path + STANDS, encoding="utf-8", errors="replace") as file,
        ):
            first = file.read().rpartition("hread 0x")[2]
            is_user = Places().is_user
            frames = (found for found in map(FRAME.match, first.splitlines()) if found is not None)
            return next((f"line {found[2]}" for found in frames if is_user(found[1])), "")
        return ""

    @property
    def trains(self) -> bool:
        """Whether it has come to a backward or a step."""
        return any(event["event"] in TRAINS for event in self.events)

    @property
    def how(self) -> str:
        """How it has ended; empty while it goes on."""
        last = self.events[-1] if self.events else {}
        return str(last["how"]) if last.get("event") == "end" else ""

    @property
    def world(self) -> int:
        """How many there should be of its kind."""
        return max((event["world"] for event in self.events if event["event"] == "process"), default=0)


class Members:
    """All of them, by the files which they leave in one folder."""

    def __init__(self, job: dict[str, Any]) -> None:
        job["deadline"] = time.monotonic() + float(job.get("time_limit", 60))
        self.folder = job["children"] = tempfile.mkdtemp(prefix="children", dir=job["scratch"])
        self.token = str(job["token"])
        self.known: dict[str, Member] = {}
        self.since = 0.0

    def all(self) -> list[Member]:
        """Those that have spoken, in the order in which they began; who withdrew is not among them."""
        with contextlib.suppress(OSError):
            present = {name for name in os.listdir(self.folder) if name.endswith(SAID)}
            self.known = {name: member for name, member in self.known.items() if name in present}
            for name in sorted(present - self.known.keys()):
                self.known[name] = Member(os.path.join(self.folder, name), self.token)
        for member in self.known.values():
            member.listen()
        return sorted(self.known.values(), key=lambda one: one.events[0].get("at", 0.0) if one.events else 0)

    def enough(self, first: bytes | bytearray) -> bool:
        """Whether all that train have been seen for long enough; `first`: what the first process has said."""
        members = self.all()
        if not members:
            return False
        training = [one for one in members if one.trains]
        hows = [one.how for one in training]
        if b'"event": "end"' in first:
            hows.append("stopped")
        elif b'"event": "backward"' in first:
            hows.append("")
        if not all(hows) or "stopped" not in hows:
            return False
        self.since = self.since or time.monotonic()
        late = [one for one in members if not one.trains and not one.how]
        complete = len(training) >= max((one.world for one in training), default=0)
        return (complete and not late) or time.monotonic() > self.since + LATE

    def clear(self) -> None:
        """Leave nothing on the disk."""
        shutil.rmtree(self.folder, ignore_errors=True)
