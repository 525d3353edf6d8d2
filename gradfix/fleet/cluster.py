"""Tasks to the workers of a dask scheduler, and their outcomes back, whatever happens to a worker."""

from __future__ import annotations

import logging
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib import metadata
from itertools import chain
from queue import Empty, SimpleQueue
from typing import Any, cast

from gradfix.fleet.batches import Batch, Packed, batches, packed, unpacked
from gradfix.fleet.worker import UNKNOWN, Answer, maker, version, work
from gradfix.outcome import Outcome
from gradfix.source import Failure
from gradfix.task import ExecutorError, Step, Task

PATIENCE = 2.0
"""Seconds without an outcome after which it is worth asking whether there is a worker."""
LEAVING = 2.0
LARGE = "distributed.admin.large-graph-warning-threshold"
"""What a large project takes is packed already, and no mistake."""
WINDOW = 512
"""Batches under way: enough for hundreds of workers, few enough to hold in memory."""


@dataclass(slots=True)
class Parcel:
    """What the tasks of a project may read."""

    content: Packed
    there: Any
    """The same, as the scheduler knows it."""


@dataclass(slots=True)
class Sent:
    """A batch under way."""

    future: Any
    batch: Batch
    parcel: Parcel
    alone: bool = False
    """Whether nothing else is under way."""


@dataclass(slots=True)
class Cluster:
    """An executor whose processes are on other machines."""

    address: str
    says: Callable[[str], None]

    def __call__(self, tasks: Iterable[Task], step: Step) -> Iterator[Outcome]:
        """The outcomes as they are done; nobody is called where there is nothing to do."""
        tasks = iter(tasks)
        for first in tasks:
            with _connected(self.address) as client:
                yield from _Work(self, client, step).outcomes(chain([first], tasks))


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    """A client of the scheduler; when it goes, the scheduler forgets what it has asked for."""
    import dask
    from distributed import Client

    for name in logging.root.manager.loggerDict:
        if name.startswith(("distributed", "tornado")):  # what they have to say is said here
            logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # other versions of dask beside each other get on
            client: Any = cast("Any", Client)(address, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ExecutorError(f"no dask scheduler answers at {address}") from error
    try:
        with dask.config.set({LARGE: "1GB"}):
            yield client
    except (OSError, CancelledError) as error:
        raise ExecutorError(f"the scheduler at {address} is gone") from error
    finally:
        client.close(timeout=LEAVING)


@dataclass(slots=True)
class _Work:
    """One run's tasks on a cluster."""

    cluster: Cluster
    client: Any
    step: Step
    sent: dict[str, Sent] = field(default_factory=dict)
    finished: SimpleQueue[Any] = field(default_factory=SimpleQueue)
    refused: dict[str, str] = field(default_factory=dict)
    """The workers that aren't asked any more, with what they have instead."""
    suspects: deque[tuple[Task, Parcel]] = field(default_factory=deque)
    """What was under way where workers have died."""
    told: bool = False

    def outcomes(self, tasks: Iterable[Task]) -> Iterator[Outcome]:
        """All outcomes."""
        self._inspect()
        for carried, cut in batches(tasks):
            parcel = self._parcel(carried)
            for batch in cut:
                self._send(batch, parcel)
                while self.sent and (len(self.sent) >= WINDOW or not self.finished.empty()):
                    yield from self._next()
        while self.sent:
            yield from self._next()
        while self.suspects:
            task, parcel = self.suspects.popleft()
            self._send((task,), self._parcel(parcel.content), alone=True)
            while self.sent:
                yield from self._next()

    def _parcel(self, content: Packed) -> Parcel:
        """Made by a worker of what the scheduler keeps, and so made again where that worker dies."""
        return Parcel(content, self.client.submit(bytes, content, pure=False))

    def _send(self, batch: Batch, parcel: Parcel, alone: bool = False) -> None:
        sent = packed((self.step, batch))
        future = self.client.submit(work, maker(), sent, parcel.there, pure=False, **self._where())
        self.sent[future.key] = Sent(future, batch, parcel, alone)
        future.add_done_callback(self.finished.put)

    def _where(self) -> dict[str, object]:
        """Past the workers that have refused, as long as there are others."""
        if not self.refused:
            return {}
        workers = [each for each in self.client.nthreads() if each not in self.refused]
        if not workers:
            theirs = " and ".join(sorted(set(self.refused.values())))
            raise ExecutorError(f"every worker has {theirs}; here is {maker()}: they must be the same")
        return {"workers": workers, "allow_other_workers": True}

    def _next(self) -> Iterator[Outcome]:
        """What comes of the batch that is done next."""
        sent = self.sent.pop(self._arrived().key)
        if sent.future.status == "finished":
            return self._received(sent, sent.future.result())
        return self._failed(sent, sent.future.exception())

    def _arrived(self) -> Any:
        while True:
            try:
                return self.finished.get(timeout=PATIENCE)
            except Empty:
                if not self.client.nthreads() and not self.told:
                    self.told = True
                    self.cluster.says(f"no worker at {self.cluster.address}: waits for one, Ctrl-C ends")

    def _received(self, sent: Sent, answer: Answer) -> Iterator[Outcome]:
        if answer.maker != maker():
            self._refuse(answer.worker, answer.maker)
            self._send(sent.batch, sent.parcel, sent.alone)
            return
        outcomes = cast("list[Outcome | None]", unpacked(answer.outcomes))
        for task, outcome in zip(sent.batch, outcomes, strict=True):
            if outcome is None:  # it asks for what only this machine has
                yield self.step(task)
            else:
                yield replace(outcome, before=None if outcome.before is None else task.content)

    def _failed(self, sent: Sent, error: BaseException) -> Iterator[Outcome]:
        """Of a batch under which workers have died, each file is tried once more when all others are done."""
        from distributed.scheduler import KilledWorker

        if isinstance(error, KilledWorker) and sent.alone:
            failure = Failure("tape", "the Python interpreter died of it")
            yield from (Outcome(task.path, failure=failure) for task in sent.batch)
        elif isinstance(error, KilledWorker):
            self.suspects.extend((task, sent.parcel) for task in sent.batch)
        elif isinstance(error, (OSError, CancelledError)):
            raise error
        elif self._inspect():
            self._send(sent.batch, sent.parcel, sent.alone)
        else:
            reason = f"{type(error).__name__}: {error}"
            raise ExecutorError(f"a worker could not begin ({reason}); here is {maker()}") from error

    def _inspect(self) -> bool:
        """Ask the workers for their gradfix, in words that each understands; say whether more refuse."""
        before = len(self.refused)
        own = version("gradfix")
        asked = own != UNKNOWN  # each batch tells more exactly, where both can read it
        versions = self.client.run(metadata.version, "gradfix", on_error="return") if asked else {}
        for worker, theirs in versions.items():
            if isinstance(theirs, metadata.PackageNotFoundError):
                self._refuse(worker, "no gradfix")
            elif isinstance(theirs, str) and theirs != own:
                self._refuse(worker, f"gradfix {theirs}")
        return len(self.refused) > before

    def _refuse(self, worker: str, theirs: str) -> None:
        if worker not in self.refused:
            self.refused[worker] = theirs
            self.cluster.says(f"goes on without the worker {worker}: it has {theirs}, here is {maker()}")
