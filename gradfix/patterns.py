"""Patterns in the manner of gitignore, and what they say of a path."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec, PathSpec


BRACKET = re.compile(r"\\.|\[(?:[!^]|(?![!^]))(?:\\.|[^\\])(?:\\.|[^\]\\])*\]|(?P<open>\[)")
"""What is escaped, a whole bracket, or one that nothing closes."""


def fault(pattern: str) -> str:
    """Why a pattern can't mean a file; "" where it can."""
    if not pattern.strip().lstrip("!/").rstrip("/") or pattern.startswith("#"):
        return "names no file"
    if any(found["open"] for part in pattern.split("/") for found in BRACKET.finditer(part)):
        return "has a `[` that nothing closes; a file of that name is `\\[`"
    return ""


@dataclass(frozen=True, slots=True)
class Patterns:
    """Patterns with the folder that they are relative to.

    For a file pathspec asks its folders too, as it must; for a folder, which is met before what is in it, the
    last pattern that matches decides.
    """

    folder: str
    spec: GitIgnoreSpec
    folder_spec: PathSpec[Any]

    @classmethod
    def read(cls, folder: str, lines: Iterable[str]) -> Patterns:
        """pathspec is imported only where there are patterns to read."""
        from pathspec import GitIgnoreSpec, PathSpec

        spec = GitIgnoreSpec.from_lines(lines)
        return cls(folder, spec, PathSpec(spec.patterns))

    def verdict(self, path: str, folder: bool) -> bool | None:
        """True: ignored; False: taken back by a `!` pattern; None: not spoken of."""
        relative = os.path.relpath(path, self.folder)
        if relative.startswith(os.pardir):
            return None
        spec = self.folder_spec if folder else self.spec
        return spec.check_file(relative.replace(os.sep, "/") + "/" * folder).include

    def ignore(self, path: str) -> bool:
        """Say whether a file is ignored, by its path from the working directory."""
        return bool(self.verdict(os.path.abspath(path), False))
