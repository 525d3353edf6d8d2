"""`%%gradfix`: one cell of a running notebook under the recorder."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import torch

from gradfix.trace.watching import watch


def run_watched(shell: Any, names: Sequence[str], cell: str) -> None:
    """Run a cell of an IPython shell and say whether its gradients flow; all optimizers are known to it."""
    watching = watch(*_watched(shell.user_ns, names), stream=sys.stdout)
    error: BaseException | None = None
    following = shell.execution_count
    shell.execution_count = len(shell.history_manager.input_hist_raw) - 1  # the number of this very cell
    watching.__enter__()
    try:
        ran = shell.run_cell(_numbered(cell))
        error = ran.error_before_exec or ran.error_in_exec
    finally:
        shell.execution_count = following
        watching.__exit__(type(error) if error else None, error, error.__traceback__ if error else None)
    if error is not None:
        raise _stopped()


def _watched(space: dict[str, Any], names: Sequence[str]) -> list[Any]:
    unknown = [name for name in names if name not in space]
    if unknown:
        raise NameError(f"%%gradfix: nothing is called {', '.join(unknown)} before this cell")
    optimizers = [value for value in list(space.values()) if isinstance(value, torch.optim.Optimizer)]
    return list({id(value): value for value in (*(space[name] for name in names), *optimizers)}.values())


def _numbered(cell: str) -> str:
    """The cell with a line where its magic stood, so that its lines keep their numbers."""
    return cell if cell.lstrip().startswith("%%") else f"# %%gradfix\n{cell}"


def _stopped() -> Exception:
    """What ends a run of all cells; the error itself has been shown."""
    from IPython.core.error import UsageError

    error: Exception = UsageError("the cell failed, as shown above")
    return error
