"""`%load_ext gradfix`: `%%gradfix` watches a cell under torch, `%gradfix` reads the cells that were run."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from gradfix import engine
from gradfix.config import read
from gradfix.outcome import Outcome, Run, View
from gradfix.plan import Plan, plan_for
from gradfix.source import NOTEBOOK

if TYPE_CHECKING:
    from gradfix.outcome import Failure

SESSION = f"session{NOTEBOOK}"
NOTHING = "gradfix: nothing found in the cells that were run"


class Shell(Protocol):
    """The part of IPython that is used."""

    user_ns: dict[str, Any]
    history_manager: Any

    def register_magic_function(self, function: Callable[..., Any], kind: str, name: str) -> None:
        """Make a magic known."""

    def run_cell(self, raw_cell: str) -> Any:
        """Run a cell, show what it shows, and its error."""


def register(shell: Shell) -> None:
    """Bring the magics into a session."""
    shell.register_magic_function(partial(gradfix, shell), "line_cell", "gradfix")


def gradfix(shell: Shell, line: str, cell: str | None = None) -> None:
    """`%%gradfix [MODELS AND OPTIMIZERS]` watches the cell, `%gradfix` reads what was run so far."""
    if cell is None:
        tell(shell)
    else:
        watched(shell, line.split(), cell)


def watched(shell: Shell, names: Sequence[str], cell: str) -> None:
    """Run a cell under the recorder and say whether its gradients flow; by itself, it knows the optimizers."""
    import torch

    from gradfix.trace import watch

    unknown = [name for name in names if name not in shell.user_ns]
    if unknown:
        raise NameError(f"%%gradfix: {', '.join(unknown)} is not defined before this cell")
    every = {id(value): value for value in list(shell.user_ns.values())}.values()
    optimizers = [value for value in every if isinstance(value, torch.optim.Optimizer)]
    watching = watch(*([shell.user_ns[name] for name in names] or optimizers), stream=sys.stdout)
    watching.__enter__()
    error: BaseException | None = None
    try:
        ran = shell.run_cell(cell if cell.lstrip().startswith("%%") else f"# %%gradfix\n{cell}")
        error = ran.error_before_exec or ran.error_in_exec
    finally:
        watching.__exit__(type(error) if error else None, error, error.__traceback__ if error else None)
    if error is not None:
        raise _stopped()


def _stopped() -> Exception:
    """What ends a run of all cells; the error itself has been shown."""
    from IPython.core.error import UsageError

    return UsageError("the cell failed, as shown above")


def tell(shell: Shell) -> None:
    """List what is found in the cells that were run, in the order in which they were."""
    from gradfix.report.cells import by_cell
    from gradfix.report.text import render

    outcome = found(list(shell.history_manager.input_hist_raw), plan_for(read(Path.cwd())))
    if outcome.failure is not None:
        print(f"gradfix: {_reason(outcome.failure)}")
    elif not outcome.findings:
        print(NOTHING)
    else:
        render(by_cell(Run((outcome,))), sys.stdout, View())


def _reason(failure: Failure) -> str:
    where = f"In [{failure.cell}], line {failure.line}: " if failure.cell else ""
    return f"{where}{failure.reason}"


def found(history: Sequence[str], plan: Plan) -> Outcome:
    """What is found in a session, by the numbers that it gives its cells; those that aren't Python never ran."""
    last = {text.strip(): number for number, text in enumerate(history)}
    kept = [text if last[text.strip()] == number else "" for number, text in enumerate(history)]
    while True:
        outcome = engine.fix(SESSION, _notebook(kept[1:]), plan)
        if outcome.failure is None or outcome.failure.cell is None:
            return outcome
        kept[outcome.failure.cell] = ""


def _notebook(texts: Sequence[str]) -> bytes:
    cells = [{"cell_type": "code", "metadata": {}, "source": text} for text in texts]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()
