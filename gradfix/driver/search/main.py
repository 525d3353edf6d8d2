"""Answers for one target after the other, each in a line of JSON, whatever they do to this process."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from typing import Any

import torch

from gradfix.driver.recipe import Recipe, Target, Undriven, from_json
from gradfix.driver.search.absent import Framework, alone, framed
from gradfix.driver.search.clock import TooLongError, in_time
from gradfix.driver.search.missing import imported
from gradfix.driver.values import to_json

FRAMED = "the trainer of its framework is not there: it logs nothing and steps by hand"


def main(asked: str) -> None:
    """The targets of one file."""
    quiet()
    torch.set_num_threads(1)
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
        module, stood = imported(target.module, target.root)
        thing = module
        for part in target.name.split("."):
            thing = getattr(thing, part)
    except (Exception, SystemExit) as error:
        return Undriven(target, f"import: {type(error).__name__}: {str(error)[:200]}")
    if framed(thing):
        alone(thing)
    seconds = float(spec["seconds"])
    try:
        with in_time(seconds * 2):
            options = {name: from_json(one) for name, one in spec.get("options", {}).items()}
            walk = Walk(target, thing, dict(vars(module)), (int(spec["tries"]), seconds), options)
            walk.proposer.modules = spec.get("modules", [])
            walk.given = {
                part: from_json(calls) for part, calls in spec["given"].get(target.name, {}).items()
            }
            found = walk.found()
            if not isinstance(found, Recipe):
                return found
            there = framed(thing)
            alike = there or (isinstance(thing, type) and issubclass(thing, Framework))
            assumed = (*found.assumed, *([FRAMED] if alike else []))
            return replace(found, stood=stood, framed=there, assumed=assumed)
    except TooLongError:
        return Undriven(target, f"a try took longer than {seconds * 2:g} s", walk.tries)
    except Exception as error:
        return Undriven(target, f"search: {type(error).__name__}: {str(error)[:200]}")
