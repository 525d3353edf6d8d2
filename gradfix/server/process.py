"""The other process, as the one that speaks the protocol sees it: asked, waited for, killed."""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable
from pathlib import Path

from gradfix.server.asking import HEAD, Answer, Ask, packed

BOOT = """\
import sys
sys.path[:] = [*filter(None, sys.path), {root!r}]
from gradfix.server.worker import main
main()
"""
"""Without the folder that the editor stands in: what lies there is read and never imported."""

STARTING = 60.0
"""Seconds that its start may take."""


class UnansweredError(Exception):
    """A text that the other process has not answered, with the reason."""


class Player:
    """Plays one text at a time in another process, for so many seconds at most."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._process: Process | None = None
        self._starting = asyncio.Lock()

    async def start(self) -> Process:
        """The process, started where there is none, when it has everything at hand."""
        async with self._starting:
            if self._process is None or self._process.returncode is not None:
                self._process = await _started()
                await self._within(_heard(self._process), STARTING)
        return self._process

    async def ask(self, ask: Ask) -> Answer:
        """The answer, or why there is none."""
        return await self._within(_exchange(await self.start(), ask), self.seconds)

    async def _within(self, answer: Awaitable[Answer], seconds: float) -> Answer:
        """An answer within so many seconds; the process that has none is ended."""
        heard = None
        try:
            heard = await asyncio.wait_for(answer, seconds)
        except asyncio.TimeoutError:
            raise UnansweredError(f"it takes longer than {seconds:g} seconds") from None
        except (OSError, EOFError):
            raise UnansweredError("the process that plays it died") from None
        finally:
            if heard is None:
                self.kill()
        return heard

    def kill(self) -> None:
        """End the process at once, whatever it is at."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            self._process = None

    async def stop(self) -> None:
        """End the process and wait until it is gone."""
        process = self._process
        self.kill()
        if process is not None:
            await process.wait()


async def _started() -> Process:
    boot = BOOT.format(root=str(Path(__file__).resolve().parents[2]))
    try:
        return await asyncio.create_subprocess_exec(sys.executable, "-c", boot, stdin=PIPE, stdout=PIPE)
    except OSError as error:
        raise UnansweredError(f"no process can be started ({error})") from error


async def _exchange(process: Process, ask: Ask) -> Answer:
    assert process.stdin is not None
    process.stdin.write(packed(ask))
    await process.stdin.drain()
    return await _heard(process)


async def _heard(process: Process) -> Answer:
    assert process.stdout is not None
    head = await process.stdout.readexactly(HEAD)
    answer = pickle.loads(await process.stdout.readexactly(int.from_bytes(head, "big")))
    assert isinstance(answer, Answer)
    return answer
