"""The folder in which outcomes are kept: made, marked as one that can be made again, and taken away."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from gradfix.config import Config

FOLDER = ".gradfix_cache"
NAME = "outcomes-1.sqlite"
"""With the number of its form: another one is another file."""
FILES = (NAME, f"{NAME}-journal")
MARKS = {
    ".gitignore": "*\n",
    "CACHEDIR.TAG": "Signature: 8a477f597d28d172789f06886806bc55\n# gradfix clean removes this.\n",
}
"""What tells others that nothing in the folder is worth keeping."""


def place(config: Config, given: str | None) -> str:
    """The folder: the one that is given, else that of the settings, else one beside them."""
    return os.path.abspath(given) if given else str(config.root / (config.cache_dir or FOLDER))


def make(folder: str) -> None:
    """Make it, if there is none: one that is there is somebody's, and gets no marks."""
    try:
        os.makedirs(folder)
    except FileExistsError:
        return
    for name, text in MARKS.items():
        Path(folder, name).write_text(text, "utf-8")


def discard(folder: str) -> None:
    """Take away what is kept, so that it is made anew."""
    for name in FILES:
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(folder, name))


def clean(folder: str) -> bool:
    """Take away all that was made there, and the folder if it is empty then; say whether there was any."""
    there = any(os.path.lexists(os.path.join(folder, name)) for name in (*FILES, *MARKS))
    discard(folder)
    for name, text in MARKS.items():
        with suppress(OSError, UnicodeDecodeError):
            mark = Path(folder, name)
            if mark.read_text("utf-8") == text:
                mark.unlink()
    with suppress(OSError):
        os.rmdir(folder)
    return there
