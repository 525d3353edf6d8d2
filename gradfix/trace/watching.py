"""The recorder inside a job that gradfix did not start: a notebook, a rank under torchrun, a test."""

from __future__ import annotations

import contextlib
import linecache
import os
import sys
from collections.abc import Iterator
from types import TracebackType
from typing import Any, TextIO

import torch

from gradfix.defects import kind_of
from gradfix.trace.report import Place, sentence
from gradfix.trace.session import Session


class Watched:
    """What a watched stretch of a program has done to its gradients."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.reasons: dict[str, str] = {}
        """Parameter without a gradient -> why."""
        self.missed: list[str] = []
        """Parameters of the watched modules that no backward reached."""

    @property
    def defects(self) -> list[Any]:
        """The broken rules, in the order in which they showed."""
        found = [event for event in self.events if event["event"] == "defect"]
        return [event for event in found if not kind_of(event["kind"]).style]

    @property
    def gradients(self) -> dict[str, float | None]:
        """The norm of the latest gradient that backward left in each leaf."""
        found: dict[str, float | None] = {}
        for event in self.events:
            if event["event"] == "backward":
                found.update(event["reached"])
        return found

    def explain(self) -> str:
        """The report as text: each broken rule with its lines, each parameter without a gradient."""
        lines = [line for defect in self.defects for line in told(defect)]
        lines += [f"no gradient: {name} ({why})" for name, why in self.reasons.items() if why != "frozen"]
        told_of = [name for name, _ in self.reasons.items()]
        lines += [
            f"no gradient: {name} (no backward reached it)"
            for name in self.missed
            if not any(same_parameter(known, name) for known in told_of)
        ]
        lines += [f"gradient not finite: {name}" for name, norm in self.gradients.items() if norm is None]
        if not lines:
            count = len(self.gradients)
            return f"gradients flow: {count} leaves reached" if count else "no backward was seen"
        return "\n".join(lines)


def told(defect: Any) -> Iterator[str]:
    """One broken rule with the code of its lines."""
    place = defect["place"]
    yield f"{where(place)}: {defect['kind']}"
    for step in defect["evidence"]:
        yield f"  {where(step['place'])}: {code(step['place'])}   <- {sentence(step, defect['facts'])}"
    if defect["torch_says"]:
        yield f"  torch says: {defect['torch_says'].splitlines()[0]}"


def where(place: Place) -> str:
    """A place as editors open it, a notebook's cell by its number."""
    file = place["file"]
    near = os.path.relpath(file) if os.path.isabs(file) else file
    return f"{cell(file) or (file if near.startswith(os.pardir) else near)}:{place['line']}"


def cell(filename: str) -> str:
    """What IPython calls a cell whose code it compiled under this name; empty elsewhere."""
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    try:
        named = shell.compile.format_code_name(filename)
    except AttributeError:
        return ""
    return " ".join(named) if named else ""


def code(place: Place) -> str:
    """The source of a line, notebook cells included."""
    return linecache.getline(place["file"], place["line"]).strip()


def rank() -> str:
    """Which of several processes this is."""
    return f"[rank {os.environ['RANK']}] " if "RANK" in os.environ else ""


class watch:  # noqa: N801 - used as a statement: with watch(model, optimizer)
    """Record what happens inside, and report on the way out."""

    def __init__(self, *objects: Any, stream: TextIO | None = None, quiet: bool = False) -> None:
        self.objects = objects
        self.stream = stream
        self.quiet = quiet
        self.seen = Watched()
        self.session = Session(self.seen.events.append)

    def __enter__(self) -> Watched:
        self.session.start()
        for given in self.objects:
            self._introduce(given)
        return self.seen

    def _introduce(self, given: Any) -> None:
        """Modules and optimizers that were built before the recorder came."""
        state, spot = self.session.state, self.session.state.places.here(3)
        if isinstance(given, torch.nn.Module):
            for module in given.modules():
                state.modules.add(module, 0, spot)
        elif isinstance(given, torch.optim.Optimizer):
            state.optimizers.add(given, 0, spot)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        ending = self.session.ending("error" if error is not None else "finished", None)
        self.session.stop()
        self.seen.reasons.update(ending["reasons"])
        if self.seen.gradients:
            self.seen.missed += [name for given in self.objects for name in unreached(given, self.seen)]
        if not self.quiet:
            lines = self.seen.explain().splitlines()
            text = "".join(f"{rank()}gradfix: {line}\n" for line in lines)
            (self.stream or sys.stderr).write(text)


@contextlib.contextmanager
def assert_gradients_flow(*objects: Any) -> Iterator[Watched]:
    """For tests: what runs inside breaks no rule, and every parameter of `objects` gets its gradient."""
    with watch(*objects, quiet=True) as seen:
        yield seen
    missed = [name for given in objects for name in unreached(given, seen)]
    bad = [name for name, norm in seen.gradients.items() if norm is None]
    if seen.defects or missed or bad:
        text = "\n".join([*(line for d in seen.defects for line in told(d)), *sentences(missed, bad, seen)])
        raise AssertionError(f"gradients do not flow\n{text}")


def sentences(missed: list[str], bad: list[str], seen: Watched) -> Iterator[str]:
    """A line for each parameter that went without."""
    for name in missed:
        why = next((why for known, why in seen.reasons.items() if known.endswith(name)), "")
        yield f"no gradient: {name}" + (f" ({why})" if why else "")
    for name in bad:
        yield f"gradient not finite: {name}"


def unreached(given: Any, seen: Watched) -> list[str]:
    """The parameters of a module that should have had a gradient and never did, cleared since or not."""
    if not isinstance(given, torch.nn.Module):
        return []
    return [
        name
        for name, p in given.named_parameters()
        if p.requires_grad
        and p.grad is None
        and not any(same_parameter(known, name) for known in seen.gradients)
    ]


def same_parameter(known: str, name: str) -> bool:
    """Whether a recorded name (`net.fc1.weight`) is a module's own name for a parameter (`fc1.weight`)."""
    return known == name or known.endswith(f".{name}")
