"""Where no namespace is to be had: writes go to a shadow folder or nowhere, and a tripwire stops the rest."""

from __future__ import annotations

import builtins
import contextlib
import functools
import io
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import torch

from gradfix.trace import children

HELD: list[str] = []
"""What was held back."""
STOPPED = {
    "os.remove": "remove", "os.rename": "rename", "os.rmdir": "remove", "os.link": "link",
    "os.symlink": "link",
    "os.truncate": "truncate", "os.chmod": "chmod", "os.chown": "chown", "os.utime": "utime",
    "shutil.rmtree": "remove", "shutil.move": "move", "sqlite3.connect": "sqlite", "os.system": "start",
    "subprocess.Popen": "start", "os.exec": "start", "os.posix_spawn": "start",
}  # fmt: skip
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
ALLOW = "--verify-allow-writes"
_torch: Any = torch


class Shadow:
    """A private folder that stands in for every file the program writes."""

    def __init__(self, room: str) -> None:
        self.room = os.path.realpath(room)
        self.ours = os.path.dirname(self.room) + os.sep
        self.folders: set[str] = set()

    def free(self, path: Any) -> bool:
        """Whether writing there harms nobody."""
        if isinstance(path, int):
            return True
        full = os.path.realpath(os.fsdecode(path))
        return full.startswith((self.ours, "/dev/", "/proc/self/"))

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


def install(job: dict[str, Any]) -> None:
    """Wrap what writes, then arm the tripwire."""
    # Children by a new interpreter find what the others have written.
    shadow = Shadow(os.path.join(job["children"], "shadow"))
    os.makedirs(shadow.room, exist_ok=True)
    tempfile.tempdir = shadow.room
    for owner, name in ((builtins, "open"), (io, "open")):
        setattr(owner, name, opener(getattr(owner, name), shadow))
    os.open = low_opener(os.open, shadow)
    os.mkdir = maker(os.mkdir, shadow)
    os.path.isdir = asker(os.path.isdir, shadow)
    os.path.exists = asker(os.path.exists, shadow)
    for owner, name in ((_torch, "save"), (_torch.jit, "save"), (_torch.onnx, "export")):
        setattr(owner, name, saver(getattr(owner, name), shadow))
    _torch.load = loader(_torch.load, shadow)
    _torch.from_file = private(_torch.from_file)
    sys.addaudithook(tripwire(shadow))


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


def saver(real: Any, shadow: Shadow) -> Any:
    """torch.save and its like write from C++, past every audit event."""

    @functools.wraps(real)
    def watched(value: Any, f: Any, *args: Any, **kwargs: Any) -> Any:
        return real(value, shadow.for_writing(f, keep=False), *args, **kwargs)

    return watched


def loader(real: Any, shadow: Shadow) -> Any:
    """torch.load finds what torch.save has led away."""

    @functools.wraps(real)
    def watched(f: Any, *args: Any, **kwargs: Any) -> Any:
        return real(shadow.for_reading(f), *args, **kwargs)

    return watched


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


def tripwire(shadow: Shadow) -> Callable[[str, tuple[Any, ...]], None]:
    """An audit hook that raises on any write that got past the wraps."""

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event == "open" and len(args) > 2 and isinstance(args[2], int) and args[2] & WRITES:
            if args[0] is not None and not shadow.free(args[0]):
                stop(f"write to {args[0]}")
        elif event in STOPPED:
            with contextlib.suppress(TypeError, ValueError):
                if args and event.startswith("os.") and shadow.free(args[0]):
                    return
            if event != "subprocess.Popen" or not children.recorded(args[0], args[1], args[3]):
                stop(f"{STOPPED[event]} {args[0] if args else ''}")
        elif event == "socket.connect" and far(*args[:2]):
            stop(f"connection to {args[1][0]}")

    return hook


def far(one: Any, address: Any) -> bool:
    """Whether a socket would leave this machine."""
    if one.family == getattr(socket, "AF_UNIX", None):
        return False
    return not str(address[0]).startswith(("127.", "::1", "localhost"))


def stop(what: str) -> None:
    """Hold back, and say which option allows it."""
    HELD.append(f"{what} (allowed by {ALLOW})")
    raise PermissionError(f"gradfix holds this back during verification: {what}")
