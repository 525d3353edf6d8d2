"""What has changed since a git revision: which files, what they were, and where their old lines are."""

from __future__ import annotations

import os
from dataclasses import dataclass

NO_COLOUR = ("--no-color", "--no-ext-diff", "--no-textconv")


class RevisionError(Exception):
    """git does not know the revision, or there is no repository."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """A file as it was at a revision, and the diff that leads to the file as it is."""

    content: bytes
    diff: bytes


@dataclass(frozen=True, slots=True)
class Revision:
    """A point in the history of the repository that the working directory is in."""

    root: str
    commit: str
    changed: dict[str, str | None]
    """Each changed file's real path, with its name at the revision; None: it did not exist."""

    def earlier(self, path: str) -> Earlier | None:
        """What a changed file was; None for one that is altogether new."""
        old = self.changed.get(os.path.realpath(path))
        if old is None:
            return None
        content = _git(self.root, "show", f"{self.commit}:{old}")
        new = os.path.relpath(os.path.realpath(path), self.root)
        both = (f":(literal){old}", f":(literal){new}")
        diff = _git(self.root, "diff", *NO_COLOUR, "-U0", "-M", self.commit, "--", *both)
        return Earlier(content, diff)

    def holds(self, path: str) -> bool:
        """Say whether a file lies in the repository."""
        return os.path.realpath(path).startswith(os.path.join(self.root, ""))

    def touches(self, path: str) -> bool:
        """Say whether a file has changed."""
        return os.path.realpath(path) in self.changed


def since(revision: str, folder: str) -> Revision:
    """The changes since a revision's common ancestor with what is checked out, untracked files among them."""
    root = _root(folder)
    commit = _commit(root, revision)
    base = _base(root, commit)
    changed = _changed(root, base)
    for name in _names(_git(root, "ls-files", "-z", "--others", "--exclude-standard")):
        changed[os.path.join(root, name)] = None
    return Revision(root, base, changed)


def _root(folder: str) -> str:
    try:
        return os.path.realpath(os.fsdecode(_git(folder, "rev-parse", "--show-toplevel").rstrip(b"\n")))
    except RevisionError as error:
        if "not a git repository" not in str(error):
            raise
        told = "the working directory is not a git repository; call gradfix from the one that holds the files"
        raise RevisionError(told) from error


def _commit(root: str, revision: str) -> str:
    try:
        return _text(_git(root, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}"))
    except RevisionError as error:
        told = "names no commit here; `git branch -a` lists names, `git fetch` brings what a clone lacks"
        raise RevisionError(f"{revision!r} {told}") from error


def _base(root: str, commit: str) -> str:
    """The common ancestor: what the other branch has gained in the meantime is not this one's change."""
    try:
        return _text(_git(root, "merge-base", commit, "HEAD"))
    except RevisionError:
        return commit


def _changed(root: str, commit: str) -> dict[str, str | None]:
    words = _names(_git(root, "diff", *NO_COLOUR, "-z", "-M", "--name-status", commit))
    changed: dict[str, str | None] = {}
    while words:
        status, old = words.pop(0), words.pop(0)
        new = words.pop(0) if status[0] in "RC" else old
        if status[0] != "D":
            changed[os.path.join(root, new)] = None if status[0] == "A" else old
    return changed


def _names(listed: bytes) -> list[str]:
    return [os.fsdecode(name) for name in listed.split(b"\0") if name]


def _text(output: bytes) -> str:
    return output.decode().strip()


def _git(folder: str, *arguments: str) -> bytes:
    import subprocess

    try:
        words = ["git", "-C", folder, *arguments]
        done = subprocess.run(words, capture_output=True, check=False, env={**os.environ, "LC_ALL": "C"})
    except OSError as error:
        raise RevisionError(f"git cannot be run: {error.strerror}") from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
        raise RevisionError(said or f"git {' '.join(arguments)} failed")
    return done.stdout
