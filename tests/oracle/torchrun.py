"""Runs a program under torch, once for every truth of its flags and every body of its unknown callee."""

from __future__ import annotations

import itertools
import os
import sys
import types
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from .facts import PROGRAM, Failure, Run
from .grafts import graft, leaf
from .instrument import instrumented
from .programs import Program
from .recorder import recording, traceback_lines
from .spoils import Watcher, watching

Trace = Callable[[types.FrameType, str, object], Any]
Body = Callable[[torch.Tensor], torch.Tensor]
TEXTS = {
    "computes": "lambda t: t * 1.5",
    "returns its argument": "lambda t: t",
    "cuts": "lambda t: t.detach().clone()",
    "saves": "lambda t: t.exp()",
    "copies": "lambda t: t.clone()",
}
"""What an unknown callee may be."""
BODIES: dict[str, Body] = {name: eval(text) for name, text in TEXTS.items()}


def backpropagates(given: torch.Tensor) -> torch.Tensor:
    """An unknown callee as the convention on what a forward hands out has it."""
    if given.requires_grad:
        torch.autograd.backward(given.sum(), retain_graph=True)
    return given


class Keeps:
    """The same, where what is handed out is backpropagated behind the forward."""

    def __init__(self) -> None:
        self.kept: list[torch.Tensor] = []

    def __call__(self, given: torch.Tensor) -> torch.Tensor:
        if given.requires_grad:
            self.kept.append((given * 1.5).sum())
        return given

    def backward(self) -> None:
        for loss in self.kept:
            torch.autograd.backward(loss, retain_graph=True)


def run_all(program: Program, bodies: Mapping[str, Body] = BODIES, *, watched: bool = False) -> list[Run]:
    """Every execution that the file's reader has to reckon with; `watched`: by the values that are saved."""
    code = compile(instrumented(program.source + program.driver), PROGRAM, "exec")
    used = bodies if program.opaque else {"": BODIES["computes"]}
    runs = []
    for assignment in assignments(program.flags):
        for variant, body in used.items():
            run = Run(assignment, variant)
            execute(code, run, body, watched)
            runs.append(run)
    return runs


def assignments(flags: int) -> list[tuple[bool, ...]]:
    """Every truth of the flags; of many, none and all of them, and each alone on and alone off."""
    if flags <= 3:
        return list(itertools.product((False, True), repeat=flags))
    alone = [tuple(place == one for place in range(flags)) for one in range(flags)]
    return [(False,) * flags, *alone, *(tuple(not on for on in each) for each in alone), (True,) * flags]


def execute(code: types.CodeType, run: Run, body: Body, watched: bool) -> None:
    torch.default_generator.manual_seed(0)
    namespace: dict[str, object] = {"__name__": "__main__"}
    with ExitStack() as stack:
        stack.enter_context(surroundings(run.assignment, body))
        recorder = stack.enter_context(recording(run))
        watcher = stack.enter_context(watching(run, recorder.settle)) if watched else None
        namespace |= {"failed__": recorder.failed, "update__": recorder.update}
        namespace |= {"graft__": graft, "leaf__": leaf}
        sys.settrace(tracer(run.passes, watcher))
        try:
            exec(code, namespace)
        except RuntimeError as error:
            note_last(run, error, recorder.failed)
        except (AttributeError, TypeError) as error:
            if "'NoneType'" in str(error) and run.backwards and not run.failures:
                run.failures.append(Failure("none gradient", str(error), tuple(traceback_lines(error))))
            else:
                run.invalid = describe(error)
        except Exception as error:
            run.invalid = describe(error)
        finally:
            sys.settrace(None)
            torch.set_grad_enabled(True)
        recorder.close()
    run.names = {f"flag{i}": bool(v) for i, v in enumerate(run.assignment)}


def note_last(run: Run, error: RuntimeError, failed: Callable[[RuntimeError], None]) -> None:
    """The error that ended the program."""
    try:
        failed(error)
    except RuntimeError:
        run.invalid = describe(error)


def describe(error: Exception) -> str:
    return f"{type(error).__name__} at {traceback_lines(error)}: {error}"


def tracer(passes: Counter[int], watcher: Watcher | None) -> Trace:
    """Notes the program's lines and nobody else's."""

    def local(frame: types.FrameType, event: str, arg: object) -> Trace:
        if event == "line":
            passes[frame.f_lineno] += 1
        if watcher is not None and event == "line":
            watcher.at(frame.f_lineno)
        if watcher is not None and event == "return":
            watcher.left(frame)
        return local

    def enter(frame: types.FrameType, event: str, arg: object) -> Trace | None:
        return local if frame.f_code.co_filename == PROGRAM else None

    return enter


@contextmanager
def surroundings(assignment: tuple[bool, ...], body: Body) -> Iterator[None]:
    """The command line, the environment and the module that make the flags and the unknown callee so."""
    first, second, third = (*assignment, False, False, False)[:3]
    argv = sys.argv
    sys.argv = ["program"] + ["-"] * (5 * first) + ["--fast"] * third
    for name in [name for name in os.environ if name.startswith("GRADFIX_ORACLE")]:
        del os.environ[name]
    os.environ.update({f"GRADFIX_ORACLE{n}": "1" for n, on in enumerate(assignment) if on and n > 2})
    if second:
        os.environ["GRADFIX_ORACLE"] = "1"
    if isinstance(body, Keeps):
        body.kept = []
    mystery = types.ModuleType("mystery")
    mystery.__dict__["blur"] = body
    sys.modules["mystery"] = mystery
    try:
        yield
    finally:
        sys.argv = argv
        del sys.modules["mystery"]
