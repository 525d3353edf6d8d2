"""Runs work in a fork, with the doors of torch watched: whatever happens there leaves nothing here."""

from __future__ import annotations

import multiprocessing
import os
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import TypeVar, cast

from .playing import install

T = TypeVar("T")
CONTEXT = multiprocessing.get_context("fork")


def forked(work: Callable[[], T], limit: float | None = None) -> T | None:
    """What some work comes to in a fork; None where it ended the process, or took so many seconds."""
    here, there = CONTEXT.Pipe(duplex=False)
    child = CONTEXT.Process(target=_answer, args=(here, there, work))
    child.start()
    there.close()
    try:
        answer = cast(T, here.recv()) if here.poll(limit) else None
    except EOFError:
        answer = None
    if answer is None:
        child.kill()
    child.join()
    return answer


def _answer(ours: Connection, pipe: Connection, work: Callable[[], object]) -> None:
    ours.close()  # else an answer that nobody waits for any more is never refused
    warnings.simplefilter("ignore")
    install()
    pipe.send(work())
    pipe.close()
    os._exit(0)
