"""What one process says of itself, where it says it, and when it has been seen for long enough."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import sys
import time
from multiprocessing import process as processes
from typing import Any

import torch

from gradfix.trace import children, compiler, tripwire
from gradfix.trace.places import failure
from gradfix.trace.report import Failure, ProcessEvent
from gradfix.trace.session import Session

PATIENCE = 0.5
"""The share of the time limit in which steps beyond the allowed ones are run for optimizers that wait."""
MOST_GRADS = 300
"""Calls of `autograd.grad` for each step that is allowed: one meta-step may hold many inner ones."""
EARLY = 1.0
"""How many seconds before its time is up a process says where it stands."""
RANK = 4
"""Where `init_process_group` takes the rank, if not by name."""
_distributed: Any = torch.distributed
_processes: Any = processes.BaseProcess


class Way:
    """From one process to the one that watches, and the one way to end."""

    def __init__(self, job: dict[str, Any], pipe: int = -1) -> None:
        self.job = job
        self.pipe, self.own, self.path = -1, 0, ""
        self.first = pipe >= 0
        """Whether this is the process that was started for the program; it alone may end the run."""
        if self.first:
            self._through(os.dup(pipe) if pipe < 64 else pipe)
        self.session = Session(self.emit, bool(job.get("hunt")))
        self.session.state.settled.never()
        self.process, self.name = os.getpid(), processes.current_process().name
        self.rank, self.world = int(os.environ.get("RANK", -1)), int(os.environ.get("WORLD_SIZE", 0))
        self.ended = False
        self.exit = os._exit
        self.patient = time.monotonic() + PATIENCE * float(job.get("time_limit", 60))
        """Until when an optimizer that has not stepped yet is waited for."""

    def start(self) -> None:
        """Record from here on, in this process and in those that are forked off it."""
        session = self.session
        os._exit = self.os_exit  # type: ignore[assignment]
        session.steps.after = session.backwards.after = self.check
        session.start()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.forked)
        session.patches.watch("processes", lambda: _processes, "_bootstrap", self._bootstrap)
        if _distributed.is_available():
            session.patches.watch("ranks", lambda: _distributed, "init_process_group", self._grouped)

    def _alarm(self) -> None:
        """Just before the time is up, write down where this process stands, be it in native code."""
        left = self.job.get("deadline", 0.0) - EARLY - time.monotonic()
        if left > 0 and self.path:
            with contextlib.suppress(OSError, ValueError, RuntimeError):
                self.stands = open(self.path + children.STANDS, "w")  # noqa: SIM115 - open for as long as we live
                faulthandler.dump_traceback_later(left, file=self.stands)

    def _through(self, pipe: int) -> None:
        self.pipe, self.own = pipe, os.fstat(pipe).st_ino

    def emit(self, event: Any) -> None:
        """One event, at once: the program may not live to its end."""
        if os.getpid() != self.process:
            return
        if self.pipe < 0:
            self.announce()
        self._say(event)
        if event["event"] == "defect" and self.job.get("first_defect"):
            self.job["max_steps"] = 0

    def _say(self, event: Any) -> None:
        data = (self.job.get("token", "") + json.dumps(event) + "\n").encode()
        with contextlib.suppress(OSError):
            # A program that closes every file may have opened its own under this number.
            while data and os.fstat(self.pipe).st_ino == self.own:
                data = data[os.write(self.pipe, data) :]

    def announce(self) -> None:
        """That this process is there, and which one it is."""
        if self.pipe < 0:
            with contextlib.suppress(OSError):
                pipe, self.path = children.channel(self.job["children"])
                self._through(pipe)
                self._alarm()
        self._say(
            ProcessEvent(
                event="process",
                pid=self.process,
                rank=self.rank,
                world=self.world,
                name=self.name,
                at=time.monotonic(),
            )
        )

    def withdraw(self) -> None:
        """This process has nothing to do with training: as if it had never been announced."""
        self.ended = True
        self.session.hush()
        if self.path and os.getpid() == self.process:
            with contextlib.suppress(OSError):
                faulthandler.cancel_dump_traceback_later()
                os.remove(self.path)

    def forked(self) -> None:
        """In a child by fork: multiprocessing says later what it is for, any other goes on on its own."""
        self.session.hush()
        if not children.forked_by_multiprocessing():
            self._adopt()

    def _adopt(self) -> None:
        """A fork of a process that was recorded becomes one of its own, with what it knows."""
        self.process, self.first, self.ended = os.getpid(), False, False
        self.pipe, self.own, self.path = -1, 0, ""
        self.session.anew()

    def _bootstrap(self, real: Any, process: Any, *args: Any, **kwargs: Any) -> Any:
        """A process of multiprocessing begins."""
        data, self.name = children.loads_data(process), process.name
        if os.getpid() != self.process and not data:
            self._adopt()
            self.announce()
        elif data:
            self.withdraw()
        run = process.run

        def watched() -> None:
            try:
                run()
            except BaseException as error:
                self.leave(error)
                raise
            self.leave()

        process.run = watched
        return real(process, *args, **kwargs)

    def _grouped(self, real: Any, *args: Any, **kwargs: Any) -> Any:
        """A process becomes a rank. It is told before, for it may wait for the others in vain."""
        given = kwargs.get("rank", args[RANK] if len(args) > RANK else -1)
        world = kwargs.get("world_size", args[RANK - 1] if len(args) >= RANK else 0)
        self.rank, self.world = max(given, self.rank), max(world, self.world)
        if os.getpid() == self.process:
            self.announce()
        result = real(*args, **kwargs)
        if self.rank < 0:
            self.rank, self.world = _distributed.get_rank(), _distributed.get_world_size()
            self.announce()
        return result

    def leave(self, error: BaseException | None = None) -> None:
        """A process that the program has started is over."""
        error = error if error is not None else getattr(sys, "last_value", None)
        if isinstance(error, SystemExit):
            # torch's own spawn turns every exception into an exit, raised while it was being handled.
            stop, error = error, error.__context__ if error.code else None
            if stop.code and not isinstance(error, Exception):
                self.end("exit", failure(stop, stop.__traceback__))
                return
        if error is None:
            self.end("finished")
        else:
            self.end("error", failure(error, error.__traceback__))

    def end(self, how: str, error: Failure | None = None) -> None:
        """Say the last words, once."""
        if self.ended or os.getpid() != self.process:
            return
        self.ended = True
        if self.pipe < 0:
            return
        ending = self.session.ending(how, error)
        ending["compiler"] = not compiler.postponed()
        ending["held_back"] = sorted(set(tripwire.HELD))
        self.announce()
        self._say(ending)

    def check(self) -> None:
        """Stop when enough has been seen."""
        if self.ended or not self._seen():
            return
        self.end("stopped")
        if not self.first or children.others(self.job.get("children")):
            # Others may still wait for what this process is to send them: who watches ends all at once.
            self.session.hush()
            return
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                continue
        self.exit(0)

    def _seen(self) -> bool:
        state, most = self.session.state, int(self.job.get("max_steps", 3))
        counts = [*state.ledger.steps.values(), *state.ledger.hand.values()]
        optimizers = max(len(state.ledger.steps), 1)
        if not counts:
            given = self.session.backwards
            done = given.filled >= max(2 * most - 1, 1) or given.succeeded >= max(MOST_GRADS * most, 1)
        else:
            done = min(counts) >= most or sum(state.ledger.steps.values()) >= 4 * most * optimizers
        return done and (most == 0 or not self._waits())

    def _waits(self) -> bool:
        """Whether an optimizer has yet to step, and gradients are there for it."""
        early = time.monotonic() < self.patient and self.session.backwards.filled > 0
        return early and bool(self.session.steps.idle())

    def os_exit(self, code: int) -> None:
        """What the program gets for os._exit."""
        left = failure(SystemExit(code), None) if code and not self.first else None
        self.end("exit" if code or self.first else "finished", left)
        self.exit(code)
