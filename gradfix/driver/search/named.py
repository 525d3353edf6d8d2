"""What is taken of arguments that are gathered, and handed on to somebody who asks for them by name."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gradfix.driver.search.attempt import Result
from gradfix.driver.search.drafts import Draft
from gradfix.driver.search.facts import Facts
from gradfix.driver.search.sources import parameters
from gradfix.driver.values import Argument, Entries, Value

if TYPE_CHECKING:
    from gradfix.driver.search.walk import Walk

MISSING = re.compile(
    r"(?:(\w+)\.)?(\w+)\(\) missing \d+ required (?:positional|keyword-only) arguments?: (.*)"
)


def named(walk: Walk, result: Result) -> Iterator[Draft]:
    """The same with what was asked for."""
    error, draft = result.error, result.draft
    text = str(error.args[0]) if error is not None and error.args else ""
    part = "build" if result.phase == "build" and walk.target.form != "function" else "call"
    kinds = {one.kind for one in parameters(called(walk, result, part)).values()}
    if isinstance(error, KeyError) and inspect.Parameter.VAR_KEYWORD in kinds:
        for value in walk.proposer.of(Facts(), inspect.Parameter.empty, part == "build")[:3]:
            yield with_more(draft, part, (Argument(text, value),))
    found = MISSING.search(text) if isinstance(error, TypeError) else None
    if found is None:
        return
    more = tuple(asked(walk, found, part == "build"))
    if inspect.Parameter.VAR_KEYWORD in kinds:
        yield with_more(draft, part, more)
    for path, one in draft.arguments():
        if path[0] == part and isinstance(one.value, Entries):
            entries = (*one.value.entries, *((repr(each.name), each.value) for each in more))
            yield draft.changed({path: Entries(entries)})
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        for value in walk.proposer.of(Facts(), inspect.Parameter.empty, part == "build")[:3]:
            count = len(getattr(draft, part) or ())
            yield with_more(draft, part, (Argument(f"x{count}", value, keyword=False),))


def called(walk: Walk, result: Result, part: str) -> Any:
    """What is given the arguments of this part."""
    if part == "build" or walk.target.form == "function":
        return walk.thing
    return getattr(result.subject, walk.target.method or "forward", None)


def with_more(draft: Draft, part: str, more: tuple[Argument, ...]) -> Draft:
    """The same with arguments that it doesn't have yet."""
    given = getattr(draft, part) or ()
    names = {one.name for one in given}
    new = (*given, *(one for one in more if one.name not in names))
    return replace(draft.given(part, new), edits=draft.edits + 1)


def asked(walk: Walk, found: re.Match[str], building: bool) -> Iterator[Argument]:
    """What somebody misses, as he would use it."""
    owner = walk.proposer.near.get(found[1] or found[2])
    for name in re.findall(r"'(\w+)'", found[3]):
        if isinstance(owner, type) and name in parameters(owner):
            facts, annotation = walk.facts(owner, name, None)
        else:
            facts, annotation = Facts(), inspect.Parameter.empty
        value: Value = walk.proposer.of(facts, annotation, building)[0]
        yield Argument(name, value)
