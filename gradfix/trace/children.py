"""The recorder in the processes that a program starts: how it gets there, where they leave what they say."""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import itertools
import json
import os
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from gradfix.trace.main import Main
from gradfix.trace.patched import Patched

FOLDER = "GRADFIX_CHILDREN"
"""The environment variable by which a new interpreter learns that it belongs to a run."""
JOB, SAID, STANDS = "job.json", ".events", ".stands"
BOOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "boot.py")
OWN = os.path.realpath(sys.executable)
HOOK = """import os, runpy
if os.environ.get({variable!r}) == {folder!r}:
    try:
        runpy.run_path({boot!r})["child"]({folder!r})
    except Exception:
        pass
"""
"""What Python imports as it starts, because it lies on the path as sitecustomize."""


def prepare(job: dict[str, Any]) -> None:
    """Make every Python that the program starts from here on find the recorder, whoever starts it."""
    folder = job.get("children")
    if not folder:
        return
    with open(os.path.join(folder, "sitecustomize.py"), "w", encoding="utf-8") as file:
        file.write(HOOK.format(variable=FOLDER, folder=folder, boot=BOOT))
    with open(os.path.join(folder, JOB), "w", encoding="utf-8") as file:
        json.dump(job, file)
    os.environ[FOLDER] = folder
    inherited = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([folder, *([inherited] if inherited else [])])


def expected(folder: str) -> None:
    """In such an interpreter, before its program: let the recorder in behind torch, if torch ever comes."""
    with open(os.path.join(folder, JOB), encoding="utf-8") as file:
        job = json.load(file)
    patched = Patched.of(job)
    patched.install()
    main = Main(patched)
    main.install()
    sys.meta_path.insert(0, AfterTorch(lambda: begin(job, main)))
    if job.get("guarded"):
        # The guard of files comes with torch, and without it nothing may run.
        try:
            importlib.import_module("torch")
        except ImportError:
            os._exit(70)
    hidden(folder)


def begin(job: dict[str, Any], main: Main) -> None:
    """Torch is there: record. What goes wrong with that is no business of the program's."""
    try:
        from gradfix.trace.program import join

        join(job, main)
    except Exception as error:
        from gradfix.trace.server import failed

        failed(channel(job["children"])[0], error, job["token"])
        if job.get("guarded"):
            os._exit(70)


def hidden(folder: str) -> None:
    """Import the sitecustomize that ours has hidden."""
    paths = [path for path in sys.path if os.path.abspath(path) != os.path.abspath(folder)]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", paths)
    if spec is not None and spec.loader is not None:
        module = sys.modules["sitecustomize"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)


class AfterTorch(importlib.abc.MetaPathFinder):
    """Calls once torch has been imported, and is gone."""

    def __init__(self, then: Callable[[], None]) -> None:
        self.then = then

    def find_spec(self, fullname: str, path: Any = None, target: ModuleType | None = None) -> Any:
        """What the others find; with torch, a loader that calls when it is done."""
        if fullname != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            load = loader.exec_module

            def loaded(module: ModuleType) -> None:
                load(module)
                self.then()

            loader.exec_module = loaded
        return spec


def channel(folder: str) -> tuple[int, str]:
    """A file of this process's own for what it says: pipes don't pass through every kind of start."""
    path = os.path.join(folder, f"{os.getpid()}-{os.urandom(4).hex()}{SAID}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
    return os.open(path, flags, 0o600), path


def others(folder: str | None) -> bool:
    """Whether a child of the program records."""
    if not folder:
        return False
    with contextlib.suppress(OSError):
        return any(name.endswith(SAID) for name in os.listdir(folder))
    return False


def recorded(executable: Any, words: Any, environment: Any) -> bool:
    """Whether what is about to be started is a Python that will find the recorder."""
    folder = os.environ.get(FOLDER, "")
    given = os.environ if environment is None else environment
    if not folder or given.get(FOLDER) != folder or not given.get("PYTHONPATH", "").startswith(folder):
        return False
    if isinstance(words, (str, bytes)) or os.path.realpath(os.fsdecode(executable)) != OWN:
        return False
    options = itertools.takewhile(lambda word: word.startswith("-"), map(os.fsdecode, words[1:]))
    return not any(set(word) & set("IES") for word in options if not word.startswith("--"))


def forked_by_multiprocessing() -> bool:
    """Whether the fork that has just happened is multiprocessing's, which says later what it is for."""
    return any(name.startswith("multiprocessing.") for name in callers())


def callers() -> Iterator[str]:
    """The modules of the frames that have led here."""
    frame = sys._getframe(1)
    while frame is not None:
        yield str(frame.f_globals.get("__name__", ""))
        frame = frame.f_back  # type: ignore[assignment]


def loads_data(process: Any) -> bool:
    """Whether a process is a worker of a DataLoader: it trains nothing, and is left alone."""
    target = getattr(process, "_target", None)
    return getattr(target, "__module__", "").startswith("torch.utils.data.")
