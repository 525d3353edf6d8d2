"""What an outcome hangs on besides what its file imports, in short: who makes it, from what, and how."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from gradfix.plan import Plan
from gradfix.task import Task

PACKAGE = Path(__file__).resolve().parents[1]
SUFFIXES = (".py", ".json", ".txt")
ELSEWHERE = frozenset({"exclude", "extend_exclude", "force_exclude", "cache_dir"})
"""Settings that say which files are looked at and where things are kept, not what is said of a file."""


def key(task: Task, settings: bytes) -> bytes:
    """The key of what is found in a file."""
    past = task.earlier
    earlier = (past.content, past.diff) if past is not None else ()
    place = (os.fsencode(task.path), os.fsencode(os.path.abspath(task.path)))
    return short((maker(), settings, *place, task.content, *earlier))


def short(parts: Iterable[bytes]) -> bytes:
    """Several texts in short; where one ends and the next begins counts too."""
    digest = sha256()
    for part in parts:
        digest.update(b"%d:" % len(part))
        digest.update(part)
    return digest.digest()


def settings_of(plan: Plan) -> bytes:
    """What a plan says of every file."""
    said = [(each.name, getattr(plan.config, each.name)) for each in fields(plan.config)]
    told = [(name, _ordered(value)) for name, value in said if name not in ELSEWHERE]
    return repr((told, plan.follows_imports)).encode("utf-8", "surrogatepass")


def _ordered(value: object) -> object:
    """The same with all that has no order in one."""
    if is_dataclass(value):
        return [_ordered(getattr(value, each.name)) for each in fields(value)]
    if isinstance(value, Mapping):
        return sorted((name, _ordered(one)) for name, one in value.items())
    if isinstance(value, frozenset):
        return sorted(value)
    return [_ordered(one) for one in value] if isinstance(value, tuple) else repr(value)


@cache
def maker() -> bytes:
    """This gradfix, with what it reads and rewrites with."""
    return short((own().encode(), _installed("libcst", sys.path).encode(), sys.version.encode()))


def own() -> str:
    """The version that is installed; of a checkout, which changes under the same one, all of it in short."""
    return _installed("gradfix", [str(PACKAGE.parent)]) or short(_modules()).hex()


def _modules() -> Iterator[bytes]:
    for folder in (PACKAGE, PACKAGE.parent / "codemods"):
        for file in sorted(folder.rglob("*")):
            if file.suffix in SUFFIXES:
                yield os.fsencode(file.relative_to(PACKAGE.parent))
                yield _content(file)


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


def _installed(name: str, folders: Iterable[str]) -> str:
    """The name and the version of an installed package, as its folder of metadata has them."""
    for folder in folders:
        try:
            beside = os.listdir(folder or ".")
        except OSError:
            continue
        for each in beside:
            if each.startswith(f"{name}-") and each.endswith(".dist-info"):
                return each
    return ""
