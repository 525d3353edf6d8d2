"""The texts that are open, and what was last found in each."""

from __future__ import annotations

import asyncio
import io
import tokenize
from dataclasses import dataclass, field

from gradfix.outcome import Outcome
from gradfix.server.asking import Ask


@dataclass(eq=False)
class Document:
    """One open text."""

    uri: str
    path: str
    folder: str
    named: bool
    """Whether it is a file, or to become one."""
    text: str
    version: int | None = None
    turn: int = 0
    """Counts how often something has changed that an answer hangs on."""
    due: float | None = None
    """When it is to be looked at next, on the clock of the loop; None: it was, or is."""
    mending: bool = False
    """Whether that is for what would mend what was found."""
    awaited: bool = False
    """Whether somebody waits for it."""
    found: Outcome | None = None
    """What was last found, in the last text that could be read."""
    basis: str = ""
    """That text."""
    mended: Outcome | None = None
    """The same with what would mend it."""
    asked: frozenset[str] = frozenset()
    """Where files were looked for that it may import."""
    changed: float = 0.0
    """When its text was last changed."""
    cost: float = 0.0
    """How many seconds the last look took."""
    complaint: str = ""
    """The last that was said of it in the log."""
    done: asyncio.Event = field(default_factory=asyncio.Event)
    """Whether all is known of the text as it stands."""

    @property
    def current(self) -> bool:
        """Whether what was found was found in the text as it stands."""
        return self.found is not None and self.basis == self.text

    def change(self, text: str, version: int | None, now: float, due: float) -> None:
        """Another text stands there now."""
        self.text, self.version, self.changed = text, version, now
        self.stir(due)

    def stir(self, due: float) -> None:
        """What was found may not hold any more."""
        self.turn += 1
        self.due, self.mending, self.mended = due, False, None
        self.done.clear()

    def settle(self) -> None:
        """All is known that can be known of the text as it stands."""
        self.awaited = False
        self.done.set()

    def ask(self, others: dict[str, bytes]) -> Ask:
        """The next question about it as it stands."""
        return Ask(self.path, encoded(self.text), self.folder, self.named, others, self.mending)


def encoded(text: str) -> bytes:
    """The bytes of a file with this text: in the encoding that it names, else in UTF-8."""
    content = text.encode("utf-8", "surrogatepass")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        return content if encoding.startswith("utf-8") else text.encode(encoding)
    except (SyntaxError, LookupError, UnicodeError):
        return content
