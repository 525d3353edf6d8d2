"""Where no namespace is to be had: writes go to a shadow folder or nowhere, and a tripwire stops the rest."""

from __future__ import annotations

import builtins
import functools
import io
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

import torch

from gradfix.trace import guard
from gradfix.trace.tripwire import ALLOW, HELD, WRITES, hook, stop

NO_EVENT = ("mkfifo", "mknod")
"""What changes folders and is not announced."""
_torch: Any = torch


class Shadow:
    """A private folder that stands in for every file the program writes."""

    def __init__(self, room: str) -> None:
        self.room = os.path.realpath(room)
        self.ours = os.path.dirname(self.room) + os.sep
        self.folders: set[str] = set()
        self.harmless = tuple(guard.devices())

    def lay(self, texts: Mapping[str, str]) -> None:
        """Have the program find these texts in its files, until it writes others."""
        for name, text in texts.items():
            stand_in = self.of(name)
            if not os.path.exists(stand_in):
                os.makedirs(os.path.dirname(stand_in), exist_ok=True)
                with open(stand_in, "w", encoding="latin-1", newline="") as file:
                    file.write(text)

    def free(self, path: Any) -> bool:
        """Whether writing there harms nobody."""
        if isinstance(path, int):
            return True
        full = os.path.realpath(os.fsdecode(path))
        return full.startswith((self.ours, "/proc/self/", *self.harmless))

    def of(self, path: Any) -> str:
        """The stand-in for a path."""
        full = os.path.realpath(os.fsdecode(path))
        return os.path.join(self.room, full.lstrip(os.sep).replace(":", "_"))

    def for_reading(self, path: Any) -> Any:
        """The stand-in if the program has written one, else the file itself."""
        if isinstance(path, (str, bytes, os.PathLike)) and not self.free(path):
            stand_in = self.of(path)
            return stand_in if os.path.exists(stand_in) else path
        return path

    def for_writing(self, path: Any, *, keep: bool) -> Any:
        """The stand-in, with the old content where the mode keeps it."""
        if not isinstance(path, (str, bytes, os.PathLike)) or self.free(path):
            return path
        stand_in = self.of(path)
        os.makedirs(os.path.dirname(stand_in), exist_ok=True)
        if keep and os.path.isfile(path) and not os.path.exists(stand_in):
            shutil.copyfile(path, stand_in)
        HELD.append(f"write to {os.path.basename(os.fsdecode(path))} (allowed by {ALLOW})")
        return stand_in


def install(job: dict[str, Any]) -> bool:
    """Wrap what writes, then arm the tripwire; True: the kernel refuses what gets past both."""
    # Children by a new interpreter find what the others have written.
    shadow = Shadow(os.path.join(job["children"], "shadow"))
    os.makedirs(shadow.room, exist_ok=True)
    shadow.lay(job.get("texts", {}))
    tempfile.tempdir = shadow.room
    for owner, name in ((builtins, "open"), (io, "open")):
        setattr(owner, name, opener(getattr(owner, name), shadow))
    os.open = low_opener(os.open, shadow)
    os.mkdir = maker(os.mkdir, shadow)
    os.path.isdir = asker(os.path.isdir, shadow)
    os.path.exists = asker(os.path.exists, shadow)
    for owner, name in ((_torch, "save"), (_torch.jit, "save")):
        setattr(owner, name, saver(getattr(owner, name), shadow))
    _torch.load = loader(_torch.load, shadow)
    for kind in (_torch.jit.ScriptModule, _torch.jit.RecursiveScriptModule, _torch._C.ScriptModule):
        kind.save = saver(kind.save, shadow)
    _torch._C.PyTorchFileWriter = writer(_torch._C.PyTorchFileWriter, shadow)
    _torch._C.import_ir_module = saver(_torch._C.import_ir_module, shadow, shadow.for_reading)
    _torch._C.PyTorchFileReader = reader(_torch._C.PyTorchFileReader, shadow)
    rendezvous = sys.modules.get("torch.distributed.rendezvous")
    if hasattr(rendezvous, "FileStore"):
        rendezvous.FileStore = writer(rendezvous.FileStore, shadow)  # type: ignore[union-attr]
    _torch.from_file = private(_torch.from_file)
    _torch.UntypedStorage.from_file = staticmethod(private(_torch.UntypedStorage.from_file))
    for name in NO_EVENT:
        if hasattr(os, name):
            setattr(os, name, refused(getattr(os, name), shadow))
    confined = bool(job.get("confined")) or guard.enter(job, shadow.ours)
    sys.addaudithook(hook(shadow.free, confined))
    return confined


def opener(real: Any, shadow: Shadow) -> Any:
    """open, with writing modes led to the shadow."""

    @functools.wraps(real)
    def watched(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if any(sign in mode for sign in "wax+"):
            return real(shadow.for_writing(file, keep="w" not in mode), mode, *args, **kwargs)
        return real(shadow.for_reading(file), mode, *args, **kwargs)

    return watched


def low_opener(real: Any, shadow: Shadow) -> Any:
    """os.open, likewise."""

    @functools.wraps(real)
    def watched(path: Any, flags: int, *args: Any, **kwargs: Any) -> Any:
        if flags & WRITES and not kwargs.get("dir_fd"):
            path = shadow.for_writing(path, keep=not flags & os.O_TRUNC)
        return real(path, flags, *args, **kwargs)

    return watched


def maker(real: Any, shadow: Shadow) -> Any:
    """os.mkdir: the folder exists for the program only."""

    @functools.wraps(real)
    def watched(path: Any, *args: Any, **kwargs: Any) -> None:
        if shadow.free(path):
            real(path, *args, **kwargs)
            return
        full = os.path.realpath(os.fsdecode(path))
        if full in shadow.folders or os.path.lexists(full):
            raise FileExistsError(17, "File exists", path)
        shadow.folders.add(full)
        HELD.append(f"folder {os.path.basename(full)} (allowed by {ALLOW})")

    return watched


def asker(real: Any, shadow: Shadow) -> Any:
    """isdir and exists: what the program made is there for it."""

    @functools.wraps(real)
    def watched(path: Any) -> bool:
        if real(path):
            return True
        if not isinstance(path, (str, bytes, os.PathLike)):
            return False
        return os.path.realpath(os.fsdecode(path)) in shadow.folders or bool(real(shadow.of(path)))

    return watched


def saver(real: Any, shadow: Shadow, where: Callable[[Any], Any] | None = None) -> Any:
    """torch.save and its like write from C++, past every audit event."""
    where = where or functools.partial(shadow.for_writing, keep=False)

    @functools.wraps(real)
    def watched(value: Any, f: Any, *args: Any, **kwargs: Any) -> Any:
        return real(value, where(f), *args, **kwargs)

    return watched


def writer(real: Any, shadow: Shadow) -> Any:
    """The class of C++ by which archives are written: its first argument is the path."""

    def watched(f: Any, *args: Any, **kwargs: Any) -> Any:
        return real(shadow.for_writing(f, keep=False), *args, **kwargs)

    return watched


def refused(real: Any, shadow: Shadow) -> Any:
    """What has no stand-in."""

    @functools.wraps(real)
    def watched(path: Any, *args: Any, **kwargs: Any) -> Any:
        if not shadow.free(path):
            stop(f"{real.__name__} {path}")
        return real(path, *args, **kwargs)

    return watched


def loader(real: Any, shadow: Shadow) -> Any:
    """torch.load finds what torch.save has led away."""

    @functools.wraps(real)
    def watched(f: Any, *args: Any, **kwargs: Any) -> Any:
        return real(shadow.for_reading(f), *args, **kwargs)

    return watched


def reader(real: Any, shadow: Shadow) -> Any:
    """The class that reads them."""
    return lambda f, *args, **kwargs: real(shadow.for_reading(f), *args, **kwargs)


def private(real: Any) -> Any:
    """from_file(shared=True) would write through to the disk."""

    @functools.wraps(real)
    def watched(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("shared") or (len(args) > 1 and args[1]):
            HELD.append(f"shared file mapping (allowed by {ALLOW})")
            kwargs.pop("shared", None)
            return real(args[0], False, *args[2:], **kwargs)
        return real(*args, **kwargs)

    return watched
