"""The program of an interpreter that a program under the recorder has started: its text, and its exit."""

from __future__ import annotations

import importlib.util
import os
import runpy
import sys
from collections.abc import Callable
from types import CodeType
from typing import Any

from gradfix.trace.patched import Patched

BEGIN = compile("__loader__.run()", "<string>", "exec")
_runpy: Any = runpy


class Main:
    """Python's way to a program leads through here: it asks every path hook before it opens a script."""

    def __init__(self, patched: Patched) -> None:
        self.patched = patched
        self.script = os.path.abspath(sys.argv[0])
        self.leave: Callable[[BaseException], None] | None = None
        """Who is to hear of an exit by code: Python tells nobody."""

    def install(self) -> None:
        """Before the program: have its script, or its module, begun from here."""
        sys.path_hooks.append(self.importer)
        _runpy._run_module_as_main = self._heard(_runpy._run_module_as_main)

    def importer(self, path: str) -> Main:
        """As if the script were an archive with a program in it."""
        if path != self.script or path.endswith(".pyc") or not os.path.isfile(path):
            raise ImportError
        return self

    def find_spec(self, name: str, target: Any = None) -> Any:
        """The script holds the program, and no other module."""
        return importlib.util.spec_from_loader(name, self, origin=self.script) if name == "__main__" else None  # type: ignore[arg-type]

    def get_code(self, name: str) -> CodeType:
        """What leads to the program: it is compiled, and fails, where its own exceptions are shown."""
        return BEGIN

    def run(self) -> None:
        """The script, as Python would run it."""
        if sys.path and sys.path[0] == self.script:
            del sys.path[0]
        self.patched.run(self.script)

    def _heard(self, real: Any) -> Any:
        def watched(*args: Any, **kwargs: Any) -> Any:
            try:
                return real(*args, **kwargs)
            except SystemExit as stop:
                if self.leave is not None:
                    self.leave(stop)
                raise

        return watched
