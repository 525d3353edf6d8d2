"""Answers for one target after the other, each in a line of JSON, whatever they do to this process."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

from gradfix.driver.recipe import Target, Undriven, from_json
from gradfix.driver.values import to_json


class TooLongError(Exception):
    """A try has taken all the time that there is."""


def main(asked: str) -> None:
    """The targets of one file."""
    quiet()
    spec = json.loads(asked)
    out = os.fdopen(os.dup(1), "w", buffering=1)
    for data in spec["targets"]:
        target = from_json(data)
        found = answer(target, spec)
        out.write(f"{spec['mark']}{json.dumps(to_json(found))}\n")
    out.flush()


def quiet() -> None:
    """Nothing that is tried is recorded."""
    from gradfix.trace.session import UNDER_WAY

    for session in UNDER_WAY:
        session.hush()


def answer(target: Target, spec: dict[str, Any]) -> Any:
    """A recipe, or why there is none."""
    from gradfix.driver.search.walk import Walk

    if target.root not in sys.path:
        sys.path.insert(0, target.root)
    try:
        module = importlib.import_module(target.module)
        thing = module
        for part in target.name.split("."):
            thing = getattr(thing, part)
    except (Exception, SystemExit) as error:
        return Undriven(target, f"import: {type(error).__name__}: {str(error)[:200]}")
    seconds = float(spec["seconds"])
    try:
        with in_time(seconds * 2):
            walk = Walk(target, thing, dict(vars(module)), (int(spec["tries"]), seconds))
            return walk.found()
    except TooLongError:
        return Undriven(target, f"a try took longer than {seconds * 2:g} s", walk.tries)
    except Exception as error:
        return Undriven(target, f"search: {type(error).__name__}: {str(error)[:200]}")


@contextlib.contextmanager
def in_time(seconds: float) -> Iterator[None]:
    """Stop what takes longer."""

    def late(number: int, frame: Any) -> None:
        raise TooLongError

    if not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    started = time.monotonic()
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        del started
