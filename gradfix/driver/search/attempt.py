"""One try: build, call, go backward; and what came of it."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any, Literal

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from gradfix.driver.recipe import Root, Target, subject_of
from gradfix.driver.search.alive import Bench, Propose
from gradfix.driver.search.athome import AtHome
from gradfix.driver.search.drafts import Draft, Path, put
from gradfix.driver.search.stepping import Stepping, of_subject, said
from gradfix.driver.search.watching import EnoughError, Steps, Watch, refused, tensors
from gradfix.driver.values import Config, Entries, Value

Phase = Literal["build", "call", "done"]
SEED = 0
MOST_ROOTS = 4


@dataclass(slots=True)
class Result:
    """What came of one try."""

    draft: Draft
    phase: Phase = "build"
    error: BaseException | None = None
    failed: tuple[str, list[tuple[int, ...]], list[bool]] | None = None
    """The call of torch that raised, the shapes that it was given, which of them are arguments."""
    shapes: set[tuple[int, ...]] = field(default_factory=set)
    """Of all tensors that something was done with."""
    calls: int = 0
    """Of torch, since the object was built."""
    built: int = 0
    subject: Any = None
    roots: tuple[Root, ...] = ()
    learns: bool = False
    backwards: int = 0
    """How often the call has gone backward itself."""
    steps: int = 0
    """After so many steps of its own it may end: the lines have been reached."""
    reached: set[int] = field(default_factory=set)
    number: bool = False
    """Whether what comes out is a plain number."""
    flows: bool = False
    """Whether what comes out requires grad."""
    pairs: dict[Path, tuple[str, ...]] = field(default_factory=dict)
    """Of an optimizer that was handed over, whom it was seen to step."""

    @property
    def progress(self) -> tuple[int, int]:
        """How far it came."""
        return ("build", "call", "done").index(self.phase), self.calls


class Trial:
    """The surroundings that all tries of a target share."""

    def __init__(
        self, target: Target, thing: Any, names: dict[str, Any], propose: Propose, options: dict[str, Value]
    ) -> None:
        self.target = target
        self.thing = thing
        self.names = names
        self.propose = propose
        self.options = options

    def build(self, draft: Draft) -> Result:
        """Only build, so that it can be seen what the object is like."""
        return self._run(replace(draft, call=None))

    def run(self, draft: Draft) -> Result:
        """All of it."""
        return self._run(draft)

    def _run(self, draft: Draft) -> Result:
        torch.manual_seed(SEED)
        result, watch = Result(draft), Watch()
        bench = Bench(dict(self.names), self.propose, self.options)
        given: list[Any] = []
        steps = Steps(set(self.target.lines), result.reached)
        stepping = Stepping(bench.made)
        hooks = register_optimizer_step_post_hook(steps), register_optimizer_step_pre_hook(stepping)
        try:
            with watch, AtHome() if draft.at_home else contextlib.nullcontext():
                self._steps(result, (bench, stepping), given, watch)
        except (Exception, SystemExit, EnoughError) as error:
            result.error = error
        finally:
            for hook in hooks:
                hook.remove()
        result.steps = steps.done if result.error is not None else 0
        if result.steps:
            result.phase, result.error = "done", None
        result.calls, result.backwards = watch.calls - result.built, watch.backwards
        if watch.refused or (result.error is not None and refused(result.error)):
            result.phase, result.error = "done", None  # what stands before it was looked for
        result.shapes = watch.shapes
        if watch.failed is not None:
            ours = {id(one) for one in given}
            name, found = watch.failed
            result.failed = name, [tuple(one.shape) for one in found], [id(one) in ours for one in found]
        result.draft = grown(draft, bench.grown)
        result.pairs = paired(result.draft, stepping)
        return result

    def _steps(self, result: Result, tools: tuple[Bench, Stepping], given: list[Any], watch: Watch) -> None:
        draft, (bench, stepping) = result.draft, tools
        subject = self.thing
        if draft.build is not None:
            args, kwargs = bench.given(draft.build, ("build",))
            subject = result.subject = self._called(result, self.thing, args, kwargs)
            result.built = watch.calls
        result.phase = "call"
        if isinstance(subject, nn.Module):
            result.learns = any(True for _ in subject.parameters())
            nn.Module.train(subject, draft.training)  # some call by that name what trains them
        if draft.call is None:
            return
        if draft.build is not None:
            name = subject_of(self.target)
            bench.names[name] = subject
            stepping.own.update(of_subject(name, subject))
        bench.building = False
        args, kwargs = bench.given(draft.call, ("call",))
        if draft.carries:
            args, kwargs = carrying(args), carrying(kwargs)
        given += tensors([args, kwargs])
        called = getattr(subject, self.target.method) if self.target.method else subject
        output = self._called(result, called, args, kwargs)
        result.phase = "done"
        result.roots = tuple(roots(output))
        result.number = isinstance(output, (int, float)) and not isinstance(output, bool)
        result.flows = any(one.requires_grad for one in tensors(output))

    def _called(self, result: Result, called: Any, args: Any, kwargs: Any) -> Any:
        if not self.target.lines:
            return called(*args, **kwargs)
        seen = result.reached

        def inner(frame: FrameType, event: str, value: Any) -> Any:
            if event == "line":
                seen.add(frame.f_lineno)
            return inner

        def outer(frame: FrameType, event: str, value: Any) -> Any:
            return inner if frame.f_code.co_filename == self.target.path else None

        sys.settrace(outer)
        try:
            return called(*args, **kwargs)
        finally:
            sys.settrace(None)


def carrying(value: Any) -> Any:
    """The same, its numbers made of leaves that require grad."""
    if isinstance(value, torch.Tensor):
        return value.requires_grad_().clone() if value.is_floating_point() else value
    if isinstance(value, (list, tuple)):
        return type(value)(carrying(one) for one in value)
    if isinstance(value, dict):
        for key in list(value):
            value[key] = carrying(value[key])
    return value


def roots(output: Any, path: str = "", deep: int = 0) -> list[Root]:
    """What of a result can be backpropagated: all that requires grad, or else all numbers."""
    found = list(_numbers(output, path, deep))
    wanted = [root for root, requires in found if requires] or [root for root, _ in found]
    return wanted[:MOST_ROOTS]


def _numbers(output: Any, path: str, deep: int) -> Any:
    if isinstance(output, torch.Tensor):
        if output.is_floating_point() and output.numel():
            yield Root(path, output.dim() == 0), output.requires_grad
    elif isinstance(output, dict) and deep < 3:
        for key, one in output.items():
            if isinstance(key, (str, int)):
                yield from _numbers(one, f"{path}[{key!r}]", deep + 1)
    elif isinstance(output, (list, tuple)) and deep < 3:
        for index, one in enumerate(output):
            yield from _numbers(one, f"{path}[{index}]", deep + 1)
    elif hasattr(output, "__dataclass_fields__") and deep < 3:
        for name in output.__dataclass_fields__:
            yield from _numbers(getattr(output, name, None), f"{path}.{name}", deep + 1)


def grown(draft: Draft, found: dict[Path, list[tuple[str, Value]]]) -> Draft:
    """The draft with what was read of its objects among their values, outer ones first."""
    for path in sorted(found, key=len):
        numbered = _numbered(draft, path)
        value = draft.at(numbered)
        known = {name for name, _ in (value.attributes if isinstance(value, Config) else value.entries)}  # type: ignore[union-attr]
        for name, new in found[path]:
            if isinstance(value, Config) and name not in known:
                value = replace(value, attributes=(*value.attributes, (name, new)))
            elif isinstance(value, Entries) and repr(name) not in known:
                value = replace(value, entries=(*value.entries, (repr(name), new)))
        arguments = list(getattr(draft, numbered[0]))
        one = arguments[numbered[1]]
        arguments[numbered[1]] = replace(one, value=put(one.value, numbered[2:], value))
        draft = draft.given(numbered[0], tuple(arguments))
    return draft


def paired(draft: Draft, stepping: Stepping) -> dict[Path, tuple[str, ...]]:
    """Whom each optimizer that was handed over has stepped, as a program says it."""
    found: dict[Path, tuple[str, ...]] = {}
    for path, owners in stepping.pairs().items():
        names = [one if isinstance(one, str) else said(draft, _numbered(draft, one)) for one in owners]
        if all(names):
            found[_numbered(draft, path)] = tuple(names)
    return found


def _numbered(draft: Draft, path: Path) -> Path:
    """A place in what was only just grown is known by name: by its number, now."""
    done = path[:2]
    for step in path[2:]:
        if isinstance(step, str) and step.startswith("+"):
            value = draft.at(done)
            names = (
                [name for name, _ in value.attributes]
                if isinstance(value, Config)
                else [key for key, _ in value.entries]  # type: ignore[union-attr]
            )
            wanted = step[1:] if isinstance(value, Config) else repr(step[1:])
            step = names.index(wanted)
        done = (*done, step)
    return done
