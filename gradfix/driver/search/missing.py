"""Packages that are not installed: what does nothing that is known stands in for them."""

from __future__ import annotations

import importlib
import os
import sys
from types import TracebackType
from typing import Any

from gradfix.driver.search.absent import Absent

MOST = 16
STOOD: list[str] = []
"""Those of this process, in the order in which they were missed."""
NEEDED = frozenset(("torch", "numpy"))


def imported(module: str, root: str) -> tuple[Any, tuple[str, ...]]:
    """A module of the project, and the packages that were stood in for."""
    while True:
        try:
            return importlib.import_module(module), tuple(STOOD)
        except ImportError as error:
            name = missed(error, root)
            if not name or name in STOOD or len(STOOD) == MOST or own(name, root):
                raise
            STOOD.append(name)
            for known in [one for one in sys.modules if one == name or one.startswith(f"{name}.")]:
                del sys.modules[known]
            sys.modules[name] = Absent(name=name)


def missed(error: ImportError, root: str) -> str:
    """What isn't there; of a package that is there and wants another one, what the project imports of it."""
    if isinstance(error, ModuleNotFoundError) and error.name not in STOOD:
        return error.name or ""
    trace: TracebackType | None = error.__traceback__
    inside = False
    while trace is not None:
        code, names = trace.tb_frame.f_code, trace.tb_frame.f_globals
        if code.co_filename.startswith(os.path.join(root, "")):
            inside = True
        elif inside and code.co_name == "<module>":
            return str(names.get("__name__", ""))
        trace = trace.tb_next
    return ""


def own(name: str, root: str) -> bool:
    """Whether it is the project's own, or what nothing can stand in for."""
    first = name.partition(".")[0]
    there = (os.path.join(root, first), os.path.join(root, f"{first}.py"))
    return name in NEEDED or any(map(os.path.exists, there))
