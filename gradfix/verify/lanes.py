"""Judges files while others are still being read, and two at a time where their programs cannot meet."""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from gradfix.verify.launch import Launcher, Limits, half_of_memory

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Work = Callable[[Item, Launcher], Answer]

MANY = 40
"""So many files are worth a second import of torch, where the first interpreter can't serve two."""
ACCELERATORS = ("/dev/nvidia0", "/dev/kfd", "/dev/dri/renderD128", "/dev/accel/accel0")
"""Whose memory two programs would share."""
TICK = 0.2


def room(limits: Limits, cpus: int) -> bool:
    """Whether two programs find what each of them was promised."""
    enough = cpus > 1 and limits.memory <= half_of_memory() and sys.platform.startswith("linux")
    return enough and not any(map(os.path.exists, ACCELERATORS))


class Lanes(Generic[Item, Answer]):
    """One thread for each interpreter; when the `with` is over, none of them has anything left to run."""

    def __init__(self, work: Work[Item, Answer], first: Launcher, wide: bool) -> None:
        self.work = work
        self.launchers = [first]
        self.wide = wide
        """Whether there may be a second one."""
        self.threads: list[threading.Thread] = []
        self.change = threading.Condition()
        self.waiting: deque[tuple[int, Item]] = deque()
        self.given = 0
        self.complete = False
        self.found: dict[int, Answer] = {}
        self.error: BaseException | None = None

    def __enter__(self) -> Lanes[Item, Answer]:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        for launcher in reversed(self.launchers):
            launcher.close()

    def add(self, item: Item) -> None:
        """One more to work on."""
        with self.change:
            self.waiting.append((self.given, item))
            self.given += 1
            self.change.notify()

    def begin(self) -> None:
        """Work from here on. To be called where no process is forked any more."""
        if not self.threads:
            self._feed(self.launchers[0])

    def answers(self) -> list[Answer]:
        """What has come of each, in the order given. This thread only waits, so that Ctrl-C finds it."""
        with self.change:
            self.complete = True
            self.change.notify_all()
        if self.waiting:
            self.begin()
        for thread in self.threads:
            while thread.is_alive() and (len(self.found) < self.given or self.error):
                thread.join(TICK)
        if self.error is not None:
            raise self.error
        return [self.found[number] for number in range(self.given)]

    def _feed(self, launcher: Launcher) -> None:
        thread = threading.Thread(target=self._run, args=(launcher,), daemon=True)
        self.threads.append(thread)
        thread.start()

    def _run(self, launcher: Launcher) -> None:
        try:
            if launcher is not self.launchers[0] and not launcher.started():
                return
            while (one := self._next()) is not None:
                self.found[one[0]] = self.work(one[1], launcher)
                self._widen()
        except BaseException as error:
            self.error = error
            self._stop()

    def _next(self) -> tuple[int, Item] | None:
        with self.change:
            while not self.waiting and not self.complete:
                self.change.wait()
            return self.waiting.popleft() if self.waiting else None

    def _widen(self) -> None:
        """Start the second interpreter once a program has shown that two could not meet."""
        first = self.launchers[0]
        worth = len(self.waiting) > (MANY if first.spare is None else 0)
        if self.wide and len(self.launchers) == 1 and worth and first.secluded:
            second = first.beside()
            self.launchers.append(second)
            self._feed(second)

    def _stop(self) -> None:
        with self.change:
            self.complete = True
            self.waiting.clear()
            self.change.notify_all()
