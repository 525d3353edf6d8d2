"""The rules, as they are listed, explained and completed while they are typed."""

from __future__ import annotations

from typing import Any

import click


def explained(list_rules: bool, explain: str | None, **_: Any) -> int:
    """All rules or the one that is asked for, shown; the exit code."""
    from gradfix.explain import listing, page
    from gradfix.registry import codemods, find, suggestion

    if explain is None:
        click.echo(listing(codemod.card for codemod in codemods().values()), nl=False)
        return 0
    codemod = find(codemods(), explain)
    if codemod is None:
        raise click.UsageError(f"there is no rule {explain!r}; {suggestion(codemods(), explain)}")
    click.echo(page(codemod.card), nl=False)
    return 0


def completed(context: click.Context, option: click.Parameter, typed: str) -> list[str]:
    """What a shell offers for the rules typed so far."""
    from gradfix.explain import offered
    from gradfix.registry import codemods

    return offered((codemod.card for codemod in codemods().values()), typed)
