"""A user and mount namespace in which every write lands in memory, and that has no network."""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import stat
import struct
import sys
from typing import Any

from gradfix.trace.guard import devices

NEWNS, NEWUSER, NEWNET, NEWIPC = 0x00020000, 0x10000000, 0x40000000, 0x08000000
RDONLY, NOSUID, NODEV, NOEXEC = 1, 2, 4, 8
REMOUNT, NOATIME, BIND, REC, PRIVATE, RELATIME = 32, 1024, 4096, 16384, 1 << 18, 1 << 21
FLAGS = {"nosuid": NOSUID, "nodev": NODEV, "noexec": NOEXEC, "noatime": NOATIME, "relatime": RELATIME}
DEEPEST = 4
"""Folders below /run in which sockets are looked for."""
SIOCSIFFLAGS, UP_AND_RUNNING = 0x8914, 0x41


def enter(job: dict[str, Any]) -> bool:
    """Go behind the glass, if the kernel lets us; False: nothing is protected."""
    if not sys.platform.startswith("linux") or job.get("no_namespace"):
        return False
    uid, gid = os.getuid(), os.getgid()
    sockets = [] if job.get("allow_network") else doors()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(NEWUSER | NEWNS | NEWIPC | (0 if job.get("allow_network") else NEWNET)):
        return False
    try:
        _map_ids(uid, gid)
        _mounts(libc, job)
        _shut(libc, sockets)
    except OSError:
        return False
    with contextlib.suppress(OSError):
        _loopback()
    return True


def _map_ids(uid: int, gid: int) -> None:
    for name, line in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(line)


def _mount(libc: Any, source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    values = [os.fsencode(text) if text else None for text in (source, target, kind)]
    if libc.mount(*values, ctypes.c_ulong(flags), os.fsencode(data) if data else None):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), target)


def folders(job: dict[str, Any]) -> list[str]:
    """The folders that stay writable (in memory): outermost ones only, real paths."""
    wanted = [job["cwd"], *job.get("roots", []), os.path.expanduser("~"), "/tmp", "/var/tmp"]
    real = sorted({os.path.realpath(path) for path in wanted if os.path.isdir(path)} - {"/"})
    kept: list[str] = []
    for path in real:
        if not any(path.startswith(outer + os.sep) for outer in kept):
            kept.append(path)
    return kept


def mounts() -> list[tuple[str, str, list[str]]]:
    """Mount point, type and flags of every mount, in order."""
    found = []
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            left, _, right = line.partition(" - ")
            fields = left.split()
            point = fields[4].encode(errors="surrogateescape").decode("unicode_escape")
            found.append((point, right.split()[0], fields[5].split(",")))
    return found


def _mounts(libc: Any, job: dict[str, Any]) -> None:
    _mount(libc, "none", "/", "", REC | PRIVATE)
    before = mounts()
    scratch = job["scratch"]
    size = int(job.get("write_limit", 1 << 31))
    inner = {folder: _below(folder, before) for folder in folders(job)}
    said = os.open(job["children"], os.O_PATH)
    _mount(libc, "tmpfs", scratch, "tmpfs", NOSUID | NODEV, f"size={size},mode=0700")
    room = os.open(scratch, os.O_PATH)
    for index, folder in enumerate(inner):
        _overlay(libc, folder, f"/proc/self/fd/{room}/{index}")
        for point, held in inner[folder]:
            _mount(libc, f"/proc/self/fd/{held}", point, "", BIND | REC)
            os.close(held)
    os.close(room)
    # What the program's children have to say is the one thing that must reach the other side.
    os.makedirs(job["children"], exist_ok=True)
    _mount(libc, f"/proc/self/fd/{said}", job["children"], "", BIND)
    os.close(said)
    if os.path.isdir("/dev/shm"):
        _mount(libc, "tmpfs", "/dev/shm", "tmpfs", NOSUID | NODEV, f"size={size}")
    _read_only(libc, [(point, options) for point, _, options in before if point not in inner])


def _read_only(libc: Any, points: list[tuple[str, list[str]]]) -> None:
    """All of the machine's own: in what is no folder of the user, nothing is ever led into memory."""
    for path in devices():
        with contextlib.suppress(OSError):
            if path not in ("/dev/pts", "/dev/shm"):
                _mount(libc, path, path, "", BIND)
    for point, options in points:
        if point != "/dev/shm":
            flags = sum({FLAGS[name] for name in options if name in FLAGS})
            flags |= NODEV if (point + "/").startswith("/dev/") else 0
            with contextlib.suppress(OSError):
                _mount(libc, "none", point, "", REMOUNT | BIND | RDONLY | flags)
    with contextlib.suppress(OSError):
        _mount(libc, "devpts", "/dev/pts", "devpts", NOSUID | NOEXEC, "newinstance,ptmxmode=0666,mode=0620")
        _mount(libc, "/dev/pts/ptmx", "/dev/ptmx", "", BIND)


def doors() -> list[str]:
    """The sockets in the file system by which services of this machine are spoken to."""
    found = set()
    with (
        contextlib.suppress(OSError),
        open("/proc/net/unix", encoding="utf-8", errors="surrogateescape") as file,
    ):
        found = {path for line in file if (path := line.split(maxsplit=7)[-1].strip()).startswith("/")}
    for root in {os.path.realpath(path) for path in ("/run", "/var/run")}:
        for folder, inner, names in os.walk(root):
            if folder.count(os.sep) > root.count(os.sep) + DEEPEST:
                inner.clear()
            found.update(os.path.join(folder, name) for name in names)
    return sorted(path for path in found if _is_socket(path))


def _is_socket(path: str) -> bool:
    with contextlib.suppress(OSError):
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    return False


def _shut(libc: Any, sockets: list[str]) -> None:
    """Lay nothing over each socket."""
    for path in sockets:
        with contextlib.suppress(OSError):
            _mount(libc, os.devnull, path, "", BIND)


def _below(folder: str, before: list[tuple[str, str, list[str]]]) -> list[tuple[str, int]]:
    """Mounts inside a folder, held open: an overlay would hide them."""
    found = []
    for point, _, _ in before:
        if point.startswith(folder + os.sep):
            with contextlib.suppress(OSError):
                found.append((point, os.open(point, os.O_PATH)))
    return found


def _overlay(libc: Any, folder: str, room: str) -> None:
    upper, work = os.path.join(room, "upper"), os.path.join(room, "work")
    for path in (room, upper, work):
        os.mkdir(path)
    os.chmod(upper, os.stat(folder).st_mode & 0o7777)
    if any(sign in folder for sign in ",:\\"):
        raise OSError(f"overlay options cannot name {folder}")
    options = f"lowerdir={folder},upperdir={upper},workdir={work}"
    try:
        _mount(libc, "overlay", folder, "overlay", NOSUID | NODEV, options + ",userxattr")
    except OSError:
        _mount(libc, "overlay", folder, "overlay", NOSUID | NODEV, options)


def _loopback() -> None:
    """Processes of one program may talk to each other."""
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        fcntl.ioctl(one.fileno(), SIOCSIFFLAGS, struct.pack("16sH14s", b"lo", UP_AND_RUNNING, b""))


def put(path: str, data: bytes) -> None:
    """Lay a text over a file inside the namespace: other processes of the program see it too."""
    with contextlib.suppress(OSError), open(path, "wb") as file:
        file.write(data)
