"""Finds the files to work on: recursive, gitignore-aware, each once, in a stable order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from gradfix.config import Config
from gradfix.patterns import Patterns
from gradfix.source import NOTEBOOK, Failure

DEFAULT_EXCLUDES = (
    "__pycache__",
    "__pypackages__",
    "node_modules",
    "site-packages",
    "venv",
    "build",
    "dist",
    "*.egg-info",
    *(
        f".{name}"
        for name in ("git", "hg", "svn", "venv", "tox", "nox", "eggs", "direnv", "ipynb_checkpoints")
    ),
    *(f".{tool}_cache" for tool in ("gradfix", "mypy", "ruff", "pytest")),
)
SUFFIXES = (".py", ".pyw", NOTEBOOK)


@dataclass(frozen=True, slots=True)
class Found:
    """A file to work on, or a path at which there is none, with the reason."""

    path: str
    failure: Failure | None = None


def find(paths: Iterable[str], config: Config, seen: set[str] | None = None) -> Iterator[Found]:
    """All files at or below these paths, without those that were seen."""
    seen = set() if seen is None else seen
    excluded = cache(partial(excludes, config))
    for path in paths:
        for found in _at(os.path.normpath(path), config, excluded):
            real = os.path.realpath(found.path)
            if real not in seen:
                seen.add(real)
                yield found


def excludes(config: Config) -> Patterns:
    """The excludes of the configuration."""
    patterns = DEFAULT_EXCLUDES if config.exclude is None else config.exclude
    return Patterns.read(str(config.root), [*patterns, *config.extend_exclude])


def is_excluded(path: str, excluded: Patterns) -> bool:
    """Say whether a path or a folder that holds it is excluded."""
    whole = os.path.abspath(path)
    return bool(excluded.verdict(whole, os.path.isdir(whole)))


def _at(path: str, config: Config, excluded: Callable[[], Patterns]) -> Iterator[Found]:
    if config.force_exclude and is_excluded(path, excluded()):
        return
    if os.path.isdir(path):
        whole = os.path.abspath(path)
        patterns = [*_above(whole), excluded()]
        yield from _below(path, [each for each in patterns if not each.verdict(whole, True)])
    elif os.path.lexists(path):
        yield Found(shown(path))
    else:
        yield Found(path, Failure("read", "no such file or directory"))


def _below(folder: str, patterns: list[Patterns]) -> Iterator[Found]:
    """The files in a folder, then those in the folders below; links to folders are not followed."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        yield Found(shown(folder), Failure("read", (error.strerror or str(error)).lower()))
        return
    patterns = (
        [*_own(folder), *patterns] if any(entry.name == ".gitignore" for entry in entries) else patterns
    )
    kept = [(entry, entry.is_dir(follow_symlinks=False)) for entry in entries]
    kept = [(entry, is_dir) for entry, is_dir in kept if not _ignored(entry.path, is_dir, patterns)]
    for entry, is_dir in kept:
        if not is_dir and entry.name.endswith(SUFFIXES) and _is_file(entry):
            yield Found(shown(entry.path))
    for entry, is_dir in kept:
        if is_dir and not os.path.exists(os.path.join(entry.path, "pyvenv.cfg")):
            yield from _below(entry.path, patterns)


def _is_file(entry: os.DirEntry[str]) -> bool:
    """A regular file, or a link to one; editors mark open files by links that lead nowhere."""
    try:
        return entry.is_file()
    except OSError:
        return False


def _ignored(path: str, is_dir: bool, patterns: Iterable[Patterns]) -> bool:
    """The innermost file of patterns that speaks of a path decides."""
    whole = os.path.abspath(path)
    verdicts = (each.verdict(whole, is_dir) for each in patterns)
    return next((verdict for verdict in verdicts if verdict is not None), False)


def _own(folder: str) -> list[Patterns]:
    return _patterns(Path(folder, ".gitignore"), folder)


def _patterns(file: Path, folder: str) -> list[Patterns]:
    try:
        lines = file.read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
    return [Patterns.read(os.path.abspath(folder), lines)]


def shared_root(paths: Iterable[str]) -> str:
    """The folder, seen from the working directory, at which a diff of these files begins; "": right there.

    A name that `git apply` takes can't climb: where a file lies outside, names begin at the root of the
    repository or, failing that, at the folder that holds everything.
    """
    here = os.getcwd()
    files = [os.path.abspath(path) for path in paths]
    if all(_holds(here, file) for file in files):
        return ""
    tops = (str(each) for each in Path(here).parents if (each / ".git").exists())
    top = next(tops, None)
    if top is None or not all(_holds(top, file) for file in files):
        top = os.path.commonpath([here, *map(os.path.dirname, files)])
    return os.path.relpath(top)


def _holds(folder: str, file: str) -> bool:
    return file.startswith(os.path.join(folder, ""))


def _above(folder: str) -> list[Patterns]:
    """What the folders above ignore, up to the root of the repository, and what the repository ignores."""
    found: list[Patterns] = []
    for each in (Path(folder), *Path(folder).parents):
        if str(each) != folder:
            found += _own(str(each))
        if (each / ".git").exists():
            return [*found, *_patterns(each / ".git" / "info" / "exclude", str(each))]
    return []


def shown(path: str) -> str:
    """A path as the user will recognise it: relative to the working directory where it lies below."""
    relative = os.path.relpath(path)
    return os.path.normpath(path) if relative.startswith(os.pardir) else relative
