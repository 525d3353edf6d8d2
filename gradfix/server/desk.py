"""Which text is looked at next, when it has come to rest; what is found in an older one is dropped."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from gradfix.server.asking import Answer, Ask
from gradfix.server.documents import Document, encoded
from gradfix.server.process import Player, UnansweredError
from gradfix.source import Failure

QUIET, LONGEST_QUIET = 0.05, 0.5
"""Seconds without a change before a text is looked at: a quarter of the last look, within these."""
LIGHT = 0.15
"""A look of so many seconds at most is worth it at once, when a text changes that has been at rest."""
PATIENCE = 1.0
"""Seconds that a look at a text that has changed since may still take; a new process takes as long."""
REST = 0.5
"""Seconds after which a text is at rest: it is looked for what would mend it, if nobody has asked before."""
ANSWER = 5.0
"""Seconds that a request waits for what isn't known yet."""


class Editor(Protocol):
    """Whom the desk tells what it knows."""

    def show(self, document: Document) -> None:
        """What was found in a document is another."""

    def log(self, message: str) -> None:
        """Something that only who asks for it wants to read."""

    def warn(self, message: str) -> None:
        """Something that keeps everything from working."""


@dataclass
class Seat:
    """One at the desk: the first finds, the second says how to mend it, and never keeps the first waiting."""

    player: Player
    mends: bool
    busy: tuple[Document, int, float] | None = None
    """What is being looked at, at which of its turns, and until when it should be done."""


class Desk:
    """The open texts, and one look after another at them."""

    def __init__(self, seconds: float, editor: Editor) -> None:
        self.seats = [Seat(Player(seconds), mends) for mends in (False, True)]
        self.editor = editor
        self.documents: dict[str, Document] = {}
        self._stirred = asyncio.Event()
        self._trouble = ""

    def open(self, document: Document) -> None:
        """A text was opened: it is looked at now."""
        self.documents[document.uri] = document
        document.stir(self._now())
        self.touch([document.path])

    def change(self, uri: str, text: str, version: int | None) -> None:
        """A text was changed: it is looked at when it has come to rest."""
        document = self.documents.get(uri)
        if document is not None:
            now = self._now()
            rested = now - document.changed > REST and document.cost <= LIGHT
            document.change(text, version, now, now if rested else now + quiet(document))
            self.touch([document.path])

    def close(self, uri: str) -> None:
        """A text is not open any more: from now on what is on disk counts."""
        document = self.documents.pop(uri, None)
        if document is not None:
            document.settle()
            self.touch([document.path])

    def touch(self, paths: Iterable[str]) -> None:
        """Files have changed: who may import one of them is looked at again."""
        changed = set(paths)
        for document in self.documents.values():
            if not changed.isdisjoint(document.asked - {document.path}):
                self._look_later(document)
        self._stir()

    def look_again(self, uri: str | None = None) -> None:
        """Look at a text again, or at all: what they hang on besides may be another."""
        for document in self.documents.values():
            if uri in (None, document.uri):
                self._look_later(document)
        self._stir()

    async def finished(self, uri: str) -> Document | None:
        """A document of which all is known; None where that takes too long."""
        document = self.documents.get(uri)
        if document is None:
            return None
        document.awaited = True
        if document.mending and document.due is not None:
            document.due = self._now()
            self._stir()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(document.done.wait(), ANSWER)
        return document if document.done.is_set() and document.current else None

    async def run(self) -> None:
        """Look at one text after another, for ever."""
        seats = [asyncio.ensure_future(self._sit(seat)) for seat in self.seats]
        try:
            await asyncio.gather(*seats)
        finally:
            for each in seats:
                each.cancel()
            await asyncio.wait(seats)

    async def _sit(self, seat: Seat) -> None:
        try:
            if not seat.mends:
                await _ready(seat)
            while True:
                document = await self._next(seat.mends)
                await _ready(seat)
                if document.due is not None and document.mending is seat.mends:
                    await self._look(seat, document)
        finally:
            await seat.player.stop()

    async def _next(self, mends: bool) -> Document:
        """The next document to look at, when its time has come."""
        while True:
            self._stirred.clear()
            waiting = (one for one in self.documents.values() if one.mending is mends)
            due = {one.uri: one.due for one in waiting if one.due is not None}
            soonest = min(due, key=due.__getitem__, default=None)
            wait = None if soonest is None else due[soonest] - self._now()
            if soonest is not None and wait is not None and wait <= 0:
                return self.documents[soonest]
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._stirred.wait(), wait)

    async def _look(self, seat: Seat, document: Document) -> None:
        """Ask about a document, and take down the answer if that is still the question."""
        ask, turn = document.ask(self._others(document)), document.turn
        document.due = None
        seat.busy = (document, turn, self._now() + (0 if seat.mends else document.cost))
        answer = await self._answer(seat, ask, document)
        seat.busy = None
        if not self._holds(document, turn):
            return
        if not ask.mend:
            document.cost = answer.seconds if answer is not None else seat.player.seconds
        if answer is None or not self._taken(document, answer, ask.mend):
            document.settle()

    async def _answer(self, seat: Seat, ask: Ask, document: Document) -> Answer | None:
        turn = document.turn
        try:
            return await seat.player.ask(ask)
        except UnansweredError as error:
            if self._holds(document, turn):
                self._complain(document, f"{document.path} is not looked at: {error}")
            return None

    def _others(self, document: Document) -> dict[str, bytes]:
        """The texts of all other files that are open."""
        others = (one for one in self.documents.values() if one.named and one is not document)
        return {one.path: encoded(one.text) for one in others}

    def _look_later(self, document: Document) -> None:
        if document.due is None or document.mending:
            document.stir(self._now() + quiet(document))

    def _holds(self, document: Document, turn: int) -> bool:
        """Whether an answer is one about a text as it stands, and about all that it hangs on."""
        return document.turn == turn and self.documents.get(document.uri) is document

    def _taken(self, document: Document, answer: Answer, mend: bool) -> bool:
        """Take down an answer; whether there is more to ask."""
        outcome = answer.outcome
        if answer.trouble:
            self._warn(answer.trouble)
            return False
        self._trouble = ""
        document.asked = answer.asked
        if outcome.failure is not None:
            self._failed(document, outcome.failure)
            return False
        document.complaint = ""
        if mend:
            document.mended = outcome
            return False
        document.found, document.basis = outcome, document.text
        self.editor.show(document)
        if outcome.findings:
            document.due, document.mending = self._now() + (0 if document.awaited else REST), True
            self._stirred.set()
        return document.mending

    def _failed(self, document: Document, failure: Failure) -> None:
        """What was found stays, on the lines where it stands by now; that a text is half typed is no news."""
        half_typed = failure.stage == "parse" and document.found is not None
        if not half_typed:
            self._complain(
                document, f"{document.path}:{failure.line or 1}: {failure.stage}: {failure.reason}"
            )
        if not document.current and document.found is not None:
            self.editor.show(document)

    def _complain(self, document: Document, message: str) -> None:
        """Say something once, and not at each stroke."""
        if message != document.complaint:
            document.complaint = message
            self.editor.log(message)

    def _warn(self, message: str) -> None:
        if message != self._trouble:
            self._trouble = message
            self.editor.warn(message)

    def _stir(self) -> None:
        """There may be something to do."""
        self._stirred.set()
        for seat in self.seats:
            if seat.busy is not None and not self._holds(*seat.busy[:2]):
                left = seat.busy[2] - self._now()
                wait = max(left, 0) + PATIENCE if left <= PATIENCE else 0
                asyncio.get_running_loop().call_later(wait, _give_up, seat, seat.busy)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


async def _ready(seat: Seat) -> None:
    """See to it that a look is only a look, and no start; who can't be started is told of when asked."""
    with contextlib.suppress(UnansweredError):
        await seat.player.start()


def _give_up(seat: Seat, busy: tuple[Document, int, float]) -> None:
    """End a look at a text that has changed since."""
    if seat.busy is busy:
        seat.player.kill()


def quiet(document: Document) -> float:
    """How long a text must stay as it is before it is looked at."""
    return min(max(document.cost / 4, QUIET), LONGEST_QUIET)
