"""The other process, as the one that speaks the protocol sees it: asked, waited for, killed."""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

from gradfix.server.asking import HEAD, Answer, Ask, packed

BOOT = """\
import sys
sys.path[:] = [*filter(None, sys.path), {root!r}]
from gradfix.server.worker import main
main()
"""
"""Without the folder that the editor stands in: what lies there is read and never imported."""


class UnansweredError(Exception):
    """A text that the other process has not answered, with the reason."""


class Player:
    """Plays one text at a time in another process, for so many seconds at most."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._process: Process | None = None
        self._starting = asyncio.Lock()

    async def start(self) -> Process:
        """The process, started where there is none."""
        async with self._starting:
            if self._process is None or self._process.returncode is not None:
                boot = BOOT.format(root=str(Path(__file__).resolve().parents[2]))
                self._process = await asyncio.create_subprocess_exec(
                    sys.executable, "-c", boot, stdin=PIPE, stdout=PIPE
                )
            return self._process

    async def ask(self, ask: Ask) -> Answer:
        """The answer, or why there is none."""
        process = await self.start()
        answer = None
        try:
            answer = await asyncio.wait_for(_exchange(process, ask), self.seconds)
        except asyncio.TimeoutError:
            raise UnansweredError(f"it takes longer than {self.seconds:g} seconds") from None
        except (OSError, EOFError):
            raise UnansweredError("the process that plays it died") from None
        finally:
            if answer is None:
                self.kill()
        return answer

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


async def _exchange(process: Process, ask: Ask) -> Answer:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(packed(ask))
    await process.stdin.drain()
    head = await process.stdout.readexactly(HEAD)
    answer = pickle.loads(await process.stdout.readexactly(int.from_bytes(head, "big")))
    assert isinstance(answer, Answer)
    return answer
