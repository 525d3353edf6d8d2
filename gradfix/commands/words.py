"""The first words that are commands, completed by a shell and guessed at where one is misspelt."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMMANDS = ("run", "why", "server", "clean")
"""Each is a module of its own in `gradfix.commands`, imported when it is called."""


def refuse_misspelt(words: Sequence[str]) -> None:
    """A first word that is no file and nearly a command is a slip of the fingers."""
    if not words or not words[0].isalpha() or os.path.exists(words[0]):
        return
    from difflib import get_close_matches

    for command in get_close_matches(words[0], COMMANDS, 1):
        raise click.UsageError(f"there is no file {words[0]!r}; is `gradfix {command}` meant?")


def completed_paths(context: click.Context, option: click.Parameter, typed: str) -> list[CompletionItem]:
    """Files; as the first word commands too."""
    from click.shell_completion import CompletionItem

    words = () if context.params.get("paths") else COMMANDS
    offered = [CompletionItem(word) for word in words if word.startswith(typed)]
    return [*offered, CompletionItem(typed, "file")]
