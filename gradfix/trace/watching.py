"""The recorder inside a job that gradfix did not start: a notebook, a rank under torchrun, a test."""

from __future__ import annotations

import contextlib
import linecache
import os
import sys
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

import torch

from gradfix.defects import kind_of
from gradfix.trace.report import BOOKS, ESSENTIAL, sentence

if TYPE_CHECKING:
    from gradfix.trace.report import Place
    from gradfix.trace.session import Session

NOTHING = "no backward was seen"
MOST_ALIKE = 8
"""How many parameters of one reason are told of one by one."""


class Watched:
    """What a watched stretch of a program has done to its gradients."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.reasons: dict[str, str] = {}
        """Parameter without a gradient -> why."""
        self.missed: dict[str, str] = {}
        """The same for the parameters of the watched modules that ought to have had one."""
        self.blind: dict[str, str] = {}
        """Part of the recorder that was off -> what went wrong there."""

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

    @property
    def failed(self) -> str:
        """Why nothing can be said, for want of a recorder; empty when something can."""
        lost = [f"{part} ({why})" for part, why in self.blind.items() if part in ESSENTIAL]
        return f"could not watch under torch {torch.__version__}: {', '.join(lost)}" if lost else ""

    def wrong(self) -> list[str]:
        """Each broken rule with its lines, each watched parameter without a gradient and why."""
        lines = [line for defect in self.defects for line in told(defect)]
        lines += ungiven(self.missed)
        lines += [f"gradient not finite: {name}" for name, norm in self.gradients.items() if norm is None]
        return [*lines, *([self.failed] if self.failed else [])]

    def explain(self) -> str:
        """The report as text."""
        others = {
            name: why for name, why in self.reasons.items() if why != "frozen" and name not in self.missed
        }
        lines = [*self.wrong(), *ungiven(others)]
        if not lines:
            seen = len(self.gradients)
            lines = [f"gradients flow: {seen} leaves reached" if seen else NOTHING]
        parts = [
            f"not looked into: {part} ({why})" for part, why in self.blind.items() if part not in ESSENTIAL
        ]
        return "\n".join(lines + parts)


def ungiven(reasons: dict[str, str]) -> Iterator[str]:
    """Each parameter without a gradient; of many with one reason the first, and how many more there are."""
    alike: dict[str, list[str]] = {}
    for name, why in reasons.items():
        alike.setdefault(why, []).append(name)
    for why, names in alike.items():
        shown = len(names) if len(names) <= MOST_ALIKE else MOST_ALIKE - 1
        yield from (f"no gradient: {name} ({why})" for name in names[:shown])
        if names[shown:]:
            yield f"no gradient: {len(names) - shown} more ({why})"


def told(defect: Any) -> Iterator[str]:
    """One broken rule with the code of its lines."""
    from gradfix.trace.places import shown

    place = defect["place"]
    yield f"{shown(place)}: {defect['kind']}"
    for step in defect["evidence"]:
        yield f"  {shown(step['place'])}: {code(step['place'])}   <- {sentence(step, defect['facts'])}"
    if defect["torch_says"]:
        yield f"  torch says: {defect['torch_says'].splitlines()[0]}"


def code(place: Place) -> str:
    """The source of a line, notebook cells included."""
    return linecache.getline(place["file"], place["line"]).strip()


def rank() -> str:
    """Which of several processes this is."""
    return f"[rank {os.environ['RANK']}] " if "RANK" in os.environ else ""


class watch(contextlib.ContextDecorator):  # noqa: N801 - used as a statement: with watch(model, optimizer)
    """Record what happens inside, and report on the way out; as often as it is entered."""

    def __init__(self, *objects: Any, stream: TextIO | None = None, quiet: bool = False) -> None:
        for given in objects:
            if not isinstance(given, (torch.nn.Module, torch.optim.Optimizer)):
                raise TypeError(
                    f"{type(self).__name__} takes modules and optimizers, not {type(given).__name__}"
                )
        self.objects = objects
        self.stream = stream
        self.quiet = quiet
        self.seen = Watched()
        self.session: Session | None = None

    def __enter__(self) -> Watched:
        self.seen = Watched()
        try:
            self.session = begun(self.seen, self.objects)
        except Exception as error:
            self.seen.blind[BOOKS] = f"{type(error).__name__}: {error}"
        return self.seen

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.session is not None:
            ended(self.session, self.seen, self.objects, error)
        if not self.quiet:
            self.tell()

    def tell(self) -> None:
        """Report what was seen so far."""
        lines = self.seen.explain().splitlines()
        text = "".join(f"{rank()}gradfix: {line}\n" for line in lines)
        (self.stream or sys.stderr).write(text)


class assert_gradients_flow(watch):  # noqa: N801 - as watch
    """For tests: what runs inside breaks no rule, and every parameter of the modules gets its gradient."""

    def __init__(self, *objects: Any) -> None:
        super().__init__(*objects, quiet=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        if error is not None:
            if isinstance(error, Exception) and self.seen.defects:
                raise AssertionError("\n".join(["gradients do not flow", *self.seen.wrong()])) from error
            return
        if wrong := self.seen.wrong() or ([] if self.seen.gradients else [NOTHING]):
            raise AssertionError("\n".join(["gradients do not flow", *wrong]))


def begun(seen: Watched, objects: Sequence[Any]) -> Session:
    """A session under way, which knows the modules and optimizers that were built before it."""
    from gradfix.trace import selfcheck
    from gradfix.trace.session import Session

    note, failure = selfcheck.verdict()
    if failure:
        raise RuntimeError(failure)
    session = Session(seen.events.append)
    session.start()
    state, spot = session.state, session.state.places.here(3)
    state.notes += [note] if note else []
    for given in objects:
        if isinstance(given, torch.nn.Module):
            for module in given.modules():
                state.modules.add(module, 0, spot)
        else:
            state.optimizers.add(given, 0, spot)
    return session


def ended(session: Session, seen: Watched, objects: Sequence[Any], error: BaseException | None) -> None:
    """What there is to say when the session is over."""
    from gradfix.trace.places import failure

    raised = failure(error, error.__traceback__) if error is not None else None
    seen.reasons.update(session.ending("error" if raised else "finished", raised)["reasons"])
    with session.state.forgiving():
        if seen.gradients:
            for given in objects:
                seen.missed.update(missed(session, given))
    session.stop()
    seen.blind.update(session.state.blind)


def missed(session: Session, given: Any) -> Iterator[tuple[str, str]]:
    """The parameters of a module that should have had a gradient and never did, and why."""
    endings, names = session.endings(), session.state.names
    for name, parameter in given.named_parameters() if isinstance(given, torch.nn.Module) else ():
        if parameter.requires_grad and not endings.reached(parameter):
            known = names.by_id(id(parameter))
            yield known if known in session.reasons else name, endings.reason(parameter)
