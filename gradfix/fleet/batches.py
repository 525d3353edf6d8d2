"""Tasks in pieces that are worth a journey, with what they may read packed once for all of a project."""

from __future__ import annotations

import os
import pickle
import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TypeAlias

from gradfix.fleet.carried import Packing
from gradfix.neighbours import on_the_path
from gradfix.task import Task

BATCH = 200_000
"""Bytes of source that make a batch: about half a second of work."""
PROJECT = 32_000_000
"""Bytes of source that are looked through before the first of them is handed out."""
Packed: TypeAlias = bytes
Batch: TypeAlias = tuple[Task, ...]


def packed(value: object) -> Packed:
    """Anything as it travels."""
    return zlib.compress(pickle.dumps(value, pickle.HIGHEST_PROTOCOL), 1)


def unpacked(value: Packed) -> object:
    """The same again; only what this run has sent is ever unpacked."""
    return pickle.loads(zlib.decompress(value))


def batches(tasks: Iterable[Task]) -> Iterator[tuple[Packed, list[Batch]]]:
    """What the tasks of one project may read, with these tasks in batches."""
    root = cache(_root)
    project: list[Task] = []
    size = 0
    for task in tasks:
        if project and (size > PROJECT or root(_folder(task)) != root(_folder(project[-1]))):
            yield _carrying(project)
            project, size = [], 0
        project.append(task)
        size += len(task.content)
    if project:
        yield _carrying(project)


def _folder(task: Task) -> str:
    return os.path.dirname(os.path.abspath(task.path))


def _root(folder: str) -> str:
    """Where the way upwards ends: at a project's root, or at that of the disk."""
    return list(on_the_path(folder))[-1]


def _carrying(tasks: Sequence[Task]) -> tuple[Packed, list[Batch]]:
    packing = Packing()
    for task in tasks:
        if task.plan.follows_imports:
            packing.add(task)
    return packed(packing.carried), list(_cut(tasks))


def _cut(tasks: Sequence[Task]) -> Iterator[Batch]:
    batch: list[Task] = []
    for task in tasks:
        batch.append(task)
        if sum(len(each.content) for each in batch) > BATCH:
            yield tuple(batch)
            batch = []
    if batch:
        yield tuple(batch)
