"""torch's compiler takes as long to import as all else, and optimizers ask for it only to be left alone."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import sys
from types import ModuleType
from typing import Any

NAME = "torch._dynamo"


class Compiler(ModuleType):
    """Stands in for the compiler until something is asked for that has a meaning where all runs eagerly."""

    def graph_break(self, *_: Any, **__: Any) -> None:
        """Nothing is compiled."""

    def disable(self, fn: Any = None, *_: Any, **__: Any) -> Any:
        """Nothing is compiled in any case."""
        return (lambda given: given) if fn is None else fn

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(real(), name)


class Finder(importlib.abc.MetaPathFinder):
    """Whoever imports a part of the compiler gets it whole."""

    def find_spec(self, fullname: str, *_: Any) -> Any:
        """None, unless it is about the compiler and that is not there yet."""
        if not fullname.startswith(NAME + "."):
            return None
        real()
        found = sys.modules.get(fullname)
        return importlib.util.spec_from_loader(fullname, Found(found)) if found is not None else None


class Found(importlib.abc.Loader):
    """Gives out a module that has come by another way meanwhile."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        self.spec = module.__spec__

    def create_module(self, _: Any) -> ModuleType:
        """The one that is there."""
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        """As it was."""
        module.__spec__ = self.spec


FINDER = Finder()


def postpone() -> None:
    """Put the stand-in where the compiler would be, if it isn't imported yet."""
    spec = importlib.util.find_spec(NAME) if NAME not in sys.modules else None
    if spec is not None:
        stand_in = Compiler(NAME)
        stand_in.__file__, stand_in.__path__ = spec.origin, list(spec.submodule_search_locations or ())
        sys.modules[NAME] = stand_in
        setattr(sys.modules["torch"], NAME.partition(".")[2], stand_in)
        sys.meta_path.insert(0, FINDER)


def postponed() -> bool:
    """Whether the stand-in is still there."""
    return isinstance(sys.modules.get(NAME), Compiler)


def real() -> ModuleType:
    """The compiler itself, in the place of its stand-in."""
    stand_in = sys.modules.get(NAME)
    if isinstance(stand_in, Compiler):
        del sys.modules[NAME]
        sys.meta_path[:] = [one for one in sys.meta_path if one is not FINDER]
        vars(sys.modules["torch"]).pop(NAME.partition(".")[2], None)
        vars(stand_in).update(vars(importlib.import_module(NAME)))
    return sys.modules[NAME]
