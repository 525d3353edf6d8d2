"""`%load_ext gradfix`: `%%gradfix` watches a cell under torch, `%gradfix` reads the cells that were run."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from functools import partial, update_wrapper
from pathlib import Path
from typing import Any

from gradfix import engine
from gradfix.config import read
from gradfix.outcome import Outcome, Run, View
from gradfix.plan import Plan, plan_for
from gradfix.source import NOTEBOOK

SESSION = f"session{NOTEBOOK}"


def register(shell: Any) -> None:
    """Bring the magics into an IPython shell."""
    cells = Cells()
    magic = update_wrapper(partial(gradfix, shell, cells), gradfix)
    shell.register_magic_function(magic, "line_cell", "gradfix")
    shell.events.register("pre_run_cell", cells.note)


@dataclass
class Cells:
    """What was run in each cell of the notebook, as far as its editor tells which cell it is."""

    texts: dict[str, list[str]] = field(default_factory=dict)

    def note(self, info: Any) -> None:
        """A cell is about to run."""
        if cell := getattr(info, "cell_id", None):
            self.texts.setdefault(cell, []).append(info.raw_cell.strip())

    def replaced(self) -> set[str]:
        """The texts that no cell has any more."""
        every = {text for texts in self.texts.values() for text in texts}
        return every - {texts[-1] for texts in self.texts.values()}


def gradfix(shell: Any, cells: Cells, line: str, cell: str | None = None) -> None:
    """`%gradfix` lists what is found in the cells that were run so far; `%%gradfix [MODELS]` watches a cell.

    It says of the gradients in it where a rule of autograd was broken, and which parameters of these models
    got none, and why.
    """
    if cell is None:
        history = list(shell.history_manager.input_hist_raw)
        tell(found(history, plan_for(read(Path.cwd())), cells.replaced()))
        return
    from gradfix.trace.cell_magic import run_watched

    run_watched(shell, line.split(), cell)


def found(history: Sequence[str], plan: Plan, replaced: Set[str] = frozenset()) -> Outcome:
    """What is found in a session, by the numbers that it gives its cells; what isn't Python never ran.

    Of a cell that was run several times, the last text counts.
    """
    last = {text.strip(): number for number, text in enumerate(history)}
    kept = [
        text if last[text.strip()] == number and text.strip() not in replaced else ""
        for number, text in enumerate(history)
    ]
    while True:
        outcome = engine.fix(SESSION, _notebook(kept[1:]), plan)
        if outcome.failure is None or outcome.failure.cell is None:
            return outcome
        kept[outcome.failure.cell] = ""


def _notebook(texts: Sequence[str]) -> bytes:
    cells = [{"cell_type": "code", "metadata": {}, "source": text} for text in texts]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


def tell(outcome: Outcome) -> None:
    """List the findings, or say that there are none."""
    from gradfix.report.cells import by_cell
    from gradfix.report.screen import Piece, write
    from gradfix.report.summary import failed
    from gradfix.report.text import render

    if outcome.failure is not None:
        write(sys.stdout, [failed(outcome, outcome.failure)], colour=False)
    elif not outcome.findings:
        write(sys.stdout, [[Piece("gradfix: nothing found in the cells that were run")]], colour=False)
    render(by_cell(Run((outcome,))), sys.stdout, View())
