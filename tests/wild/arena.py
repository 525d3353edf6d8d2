"""Runs programs under torch with a witness, in a fork of this warm process that is renewed now and then."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import signal
import sys
import warnings
from dataclasses import dataclass
from types import FrameType
from typing import IO, Any

import torch
from torch import nn

from .facts import Facts, Failure, dumped, loaded
from .probe import Probe
from .witness import PROGRAM, Stand, Witness, install

SECONDS = 60
RENEWED = 200
"""How many programs share a process: none of them may leave much behind, and none that ends it hurts another."""


@dataclass
class Child:
    """A fork that answers with the facts of each program it is told of."""

    process: int
    questions: IO[str]
    answers: IO[str]
    left: int = RENEWED

    def ask(self, source: str, calls: list[list[str]], probed: str) -> str:
        """The answer, or nothing where the process has ended."""
        try:
            self.questions.write(json.dumps([source, calls, probed]) + "\n")
            self.questions.flush()
        except BrokenPipeError:
            return ""
        return self.answers.readline()

    def end(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self.questions.close()
        self.answers.close()
        os.waitpid(self.process, 0)


class Pool:
    """The one child at work."""

    child: Child | None = None


def warm() -> None:
    """Import all of torch that programs will ask for."""
    torch.set_num_threads(1)
    torch.optim.Adam(torch.nn.Linear(1, 1).parameters())
    for module in ("torch.func", "torch.utils.checkpoint", "torch.utils.data"):
        importlib.import_module(module)


def runs(source: str, calls: list[list[str]], probed: str = "") -> list[Facts]:
    """What torch did for each command line; nothing where the process ended early.

    `probed`: a class whose first call ends the program with what torch says of it by convention D.
    """
    child = Pool.child or _born()
    child.left -= 1
    text = child.ask(source, calls, probed)
    if not text or not child.left:
        child.end()
        Pool.child = None
    else:
        Pool.child = child
    return loaded(text) if text else []


def _born() -> Child:
    hear, ask = os.pipe()
    receive, answer = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            os.close(ask)
            os.close(receive)
            _serve(os.fdopen(hear), os.fdopen(answer, "w"))
        finally:
            os._exit(0)
    os.close(hear)
    os.close(answer)
    return Child(process, os.fdopen(ask, "w"), os.fdopen(receive))


def _serve(questions: IO[str], answers: IO[str]) -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)  # others wait for each other, busily, where there is more to do than cores
    install()
    for line in questions:
        source, calls, probed = json.loads(line)
        signal.alarm(SECONDS)
        hook = nn.modules.module.register_module_forward_pre_hook(Probe(probed)) if probed else None
        answers.write(dumped([_run(source, call) for call in calls]) + "\n")
        if hook is not None:
            hook.remove()
        answers.flush()


def _run(source: str, call: list[str]) -> Facts:
    witness, lines, raised = Witness(), set[int](), dict[int, BaseException]()

    def local(frame: FrameType, event: str, argument: Any) -> Any:
        lines.add(frame.f_lineno)
        if event == "exception" and isinstance(argument[1], RuntimeError | TypeError | AttributeError):
            raised[id(argument[1])] = argument[1]
        return local

    def tracer(frame: FrameType, event: str, argument: Any) -> Any:
        return local if frame.f_code.co_filename == PROGRAM else None

    torch.set_grad_enabled(True)
    torch.manual_seed(0)
    sys.argv = [PROGRAM, *call]
    error = None
    Stand.now = witness
    try:
        code = compile(source, PROGRAM, "exec")
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            sys.settrace(tracer)
            exec(code, {"__name__": "__main__"})
    except BaseException as caught:  # whatever ends a program is its answer
        error = caught
    finally:
        sys.settrace(None)
        Stand.now = None
    torch.set_grad_enabled(True)
    facts = witness.ended(lines)
    facts.error = _failure(error) if error and not _ends_well(error) else None
    facts.caught = [_failure(each) for each in raised.values() if each is not error]
    return facts


def _failure(error: BaseException) -> Failure:
    return type(error).__name__, str(error), _lines(error)


def _ends_well(error: BaseException) -> bool:
    """Whether a program has said that it is done."""
    return isinstance(error, SystemExit) and not error.code


def _lines(error: BaseException) -> tuple[int, ...]:
    found, trace = [], error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == PROGRAM:
            found.append(trace.tb_lineno)
        trace = trace.tb_next
    return tuple(reversed(found))
