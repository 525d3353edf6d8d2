"""Lays patched text over files of the program, for imports and tracebacks, without touching the disk."""

from __future__ import annotations

import builtins
import importlib.machinery
import io
import linecache
import os
import sys
import tokenize
from collections.abc import Mapping
from io import BytesIO
from types import ModuleType
from typing import Any


class Patched:
    """File -> the bytes that the program is to find there."""

    def __init__(self, texts: Mapping[str, bytes]) -> None:
        self.texts = {os.path.abspath(name): data for name, data in texts.items()}
        self.real = {os.path.realpath(name): data for name, data in self.texts.items()}

    @classmethod
    def of(cls, job: Mapping[str, Any]) -> Patched:
        """Those that come with a job."""
        return cls({name: text.encode("latin-1") for name, text in job.get("texts", {}).items()})

    def get(self, path: str) -> bytes | None:
        """The text laid over a file, if there is one."""
        full = os.path.abspath(path)
        found = self.texts.get(full)
        return found if found is not None else self.real.get(os.path.realpath(full))

    def read(self, path: str) -> bytes:
        """What the program is to find in a file."""
        found = self.get(path)
        if found is not None:
            return found
        with open(path, "rb") as file:
            return file.read()

    def install(self) -> None:
        """Make imports compile the laid text, never a cached one, and tracebacks show it."""
        sys.dont_write_bytecode = True
        if not self.texts:
            return
        loader: Any = importlib.machinery.SourceFileLoader
        get_code, get_data = loader.get_code, loader.get_data

        def patched_code(this: Any, fullname: str) -> Any:
            data = self.get(this.path)
            return get_code(this, fullname) if data is None else this.source_to_code(data, this.path)

        def patched_data(this: Any, path: str) -> Any:
            data = self.get(path)
            return get_data(this, path) if data is None else data

        loader.get_code, loader.get_data = patched_code, patched_data
        io.open_code = self._opener(io.open_code)
        for name, data in self.texts.items():
            lines = text_of(data).splitlines(keepends=True)
            linecache.cache[name] = (len(data), None, lines, name)

    def _opener(self, real: Any) -> Any:
        """By which runpy, and with it every new process of multiprocessing, reads a script."""

        def opened(path: str) -> Any:
            data = self.get(path)
            return real(path) if data is None else BytesIO(data)

        return opened

    def run(self, target: str) -> None:
        """As runpy.run_path, with the module left in sys.modules so that pickling finds it."""
        path = os.path.abspath(target)
        sys.path.insert(0, os.path.dirname(os.path.realpath(path)))
        module = ModuleType("__main__")
        module.__dict__.update(__file__=target, __builtins__=builtins, __cached__=None)
        module.__loader__ = importlib.machinery.SourceFileLoader("__main__", target)
        sys.modules["__main__"] = module
        exec(compile(self.read(path), path, "exec", dont_inherit=True), module.__dict__)


def text_of(data: bytes) -> str:
    """Source bytes as text, by their own coding cookie."""
    try:
        encoding, _ = tokenize.detect_encoding(BytesIO(data).readline)
        return data.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError):
        return data.decode("latin-1")
