"""What the process that speaks the protocol asks of the one that plays texts, and what it is answered."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass

from gradfix.outcome import Outcome

HEAD = 8
"""Bytes in front of each message: how long it is."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A text to look at."""

    path: str
    content: bytes
    folder: str
    """Where its configuration is looked for."""
    named: bool = True
    """Whether it is a file, or to become one: then what it imports is followed."""
    others: Mapping[str, bytes] | None = None
    """The other texts that are open, which count in the place of what is on disk."""
    mend: bool = False
    """Whether to say how what is found would be mended."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of it."""

    outcome: Outcome
    asked: frozenset[str] = frozenset()
    """Where files were looked for that it may import: who changes one of them changes the answer."""
    seconds: float = 0.0
    """How long that took."""
    trouble: str = ""
    """Why it could not be looked at all: the configuration can't be read."""


READY = Answer(Outcome(""))
"""What is said before anything was asked: all is at hand that a text may need."""


def packed(message: object) -> bytes:
    """A message as it goes through the pipe."""
    body = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return len(body).to_bytes(HEAD, "big") + body
