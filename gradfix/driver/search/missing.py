"""Packages that are not installed: what does nothing that is known stands in for them."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any
from unittest.mock import MagicMock

MOST = 12
STOOD: list[str] = []
"""Those of this process, in the order in which they were missed."""
NEEDED = frozenset(("torch", "numpy"))


def imported(module: str, root: str) -> tuple[Any, tuple[str, ...]]:
    """A module of the project, and the packages that were stood in for."""
    while True:
        try:
            return importlib.import_module(module), tuple(STOOD)
        except ModuleNotFoundError as error:
            name = error.name or ""
            if not name or name in STOOD or len(STOOD) == MOST or own(name, root):
                raise
            STOOD.append(name)
            sys.modules[name] = MagicMock()


def own(name: str, root: str) -> bool:
    """Whether it is the project's own, or what nothing can stand in for."""
    first = name.partition(".")[0]
    there = (os.path.join(root, first), os.path.join(root, f"{first}.py"))
    return first in NEEDED or any(map(os.path.exists, there))
