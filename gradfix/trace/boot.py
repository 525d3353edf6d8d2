"""Started by path in the user's interpreter: makes gradfix.trace importable there, and no other package."""

from __future__ import annotations

import importlib.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def load(name: str, folder: str) -> None:
    """Import one package from its folder, whatever sys.path says."""
    path = os.path.join(folder, "__init__.py")
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=[folder])
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


def child(folder: str) -> None:
    """In an interpreter that a program under the recorder has started: the recorder comes with torch."""
    load("gradfix", os.path.dirname(HERE))
    load("gradfix.trace", HERE)
    from gradfix.trace.children import expected

    expected(folder)


def main() -> int:
    """Serve jobs until the parent goes away, on one way or two; with `one`, run a single job and be gone."""
    sys.dont_write_bytecode = True
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != HERE]
    load("gradfix", os.path.dirname(HERE))
    load("gradfix.trace", HERE)
    if sys.argv[1:] == ["one"]:
        from gradfix.trace.fresh import one

        one()
    from gradfix.trace.server import serve

    second = [int(fd) for fd in sys.argv[1:] if fd.isdigit()]
    return serve(anew=not hasattr(os, "fork") or sys.argv[1:] == ["anew"], second=second)


if __name__ == "__main__":
    sys.exit(main())
