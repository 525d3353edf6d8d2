"""Looks at the calls that the kernel hands over: what stays inside may pass, the rest is refused."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
import struct
from collections.abc import Callable

from gradfix.trace.seccomp import INET, INET6, UNIX, machine

RECEIVE, ANSWER = 0xC0502100, 0xC0182101
QUESTION, REPLY = struct.Struct("QIIiIQ6Q"), struct.Struct("QqiI")
CONTINUE = 1
LONGEST = 4096
HERE_AND_NOW = -100
LOOPBACK6 = bytes(15) + b"\x01"
MAPPED = bytes(10) + b"\xff\xff\x7f"


class Doorman:
    """Waits for the listener of a run that has no namespace, then answers until the program is gone."""

    def __init__(self, end: socket.socket, room: str, held: Callable[[str], None]) -> None:
        self.end = end
        self.room = os.path.realpath(room)
        self.held = held
        self.listener = -1

    def fileno(self) -> int:
        """What to wait on."""
        return self.listener if self.listener >= 0 else self.end.fileno()

    def attend(self) -> bool:
        """Something has come; False: there is nobody left to answer."""
        try:
            if self.listener >= 0:
                return self._answer()
            _, found, *_ = socket.recv_fds(self.end, 1, 1)
            self.listener = found[0] if found else -1
            return bool(found)
        except OSError:
            return False

    def close(self) -> None:
        """From now on the kernel refuses on its own."""
        self.end.close()
        if self.listener >= 0:
            os.close(self.listener)
            self.listener = -1

    def _answer(self) -> bool:
        import fcntl

        poll = select.poll()
        poll.register(self.listener, select.POLLIN)
        events = poll.poll(0)
        if not any(event & select.POLLIN for _, event in events):
            return not events
        asked = bytearray(QUESTION.size)
        fcntl.ioctl(self.listener, RECEIVE, asked)
        number, pid, _, call, _, _, *arguments = QUESTION.unpack(asked)
        passes = False
        with contextlib.suppress(OSError, ValueError, IndexError, struct.error):
            passes = self._passes(pid, call, arguments)
        with contextlib.suppress(OSError):
            answer = (0, CONTINUE) if passes else (-errno.EACCES, 0)
            fcntl.ioctl(self.listener, ANSWER, REPLY.pack(number, 0, *answer))
        return True

    def _passes(self, pid: int, call: int, arguments: list[int]) -> bool:
        of = machine()
        if of is None:
            return False
        if call == of.connect:
            address = memory(pid, arguments[1], min(arguments[2], LONGEST))
            return self._near(pid, address) or self._refuse(f"connection to {shown(address)}")
        folder, path = of.paths[call]
        start = arguments[path] if path is not None else 0
        said = os.fsdecode(memory(pid, start, LONGEST).split(b"\0")[0]) if start else ""
        full = self._full(pid, number_of(arguments[folder]) if folder is not None else None, said)
        return self._inside(full) or self._refuse(f"change of attributes of {os.path.basename(full)}")

    def _full(self, pid: int, held: int | None, said: str) -> str:
        """The file that a call names, by a path or by the number of an open one."""
        start = os.readlink(f"/proc/{pid}/{'cwd' if held in (None, HERE_AND_NOW) else f'fd/{held}'}")
        return os.path.realpath(os.path.join(start, said) if said else start)

    def _inside(self, path: str) -> bool:
        return (path + os.sep).startswith((self.room + os.sep, "/dev/shm/", "/memfd:"))

    def _near(self, pid: int, address: bytes) -> bool:
        """Whether a connection stays among the processes of this program, or on this machine's loopback."""
        (family,) = struct.unpack_from("H", address)
        if family == INET:
            return address[4:5] == b"\x7f"
        if family == INET6:
            return address[8:24] == LOOPBACK6 or address[8:21] == MAPPED
        if family == UNIX:
            # Landlock keeps abstract ones apart; where it can't, none is let through.
            path = os.fsdecode(address[2:].split(b"\0")[0])
            full = self._full(pid, None, path) if path else ""
            return bool(full) and (self._inside(full) or not os.path.exists(full))
        return bool(family == 0)

    def _refuse(self, what: str) -> bool:
        self.held(what)
        return False


def number_of(argument: int) -> int:
    """The number of an open file, as a call is given it."""
    low = argument & 0xFFFFFFFF
    return low - (1 << 32) if low & 0x80000000 else low


def memory(pid: int, start: int, size: int) -> bytes:
    """What stands in a process's memory; less than asked where it ends."""
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as file:
        whole = min(size, LONGEST - start % LONGEST)
        first = os.pread(file.fileno(), whole, start)
        with contextlib.suppress(OSError):
            if b"\0" not in first or size < LONGEST:
                first += os.pread(file.fileno(), size - whole, start + whole)
        return first


def shown(address: bytes) -> str:
    """Where to, for a reader."""
    (family,) = struct.unpack_from("H", address)
    if family == INET:
        return socket.inet_ntop(socket.AF_INET, address[4:8])
    if family == INET6:
        return socket.inet_ntop(socket.AF_INET6, address[8:24])
    return os.fsdecode(address[2:].strip(b"\0").split(b"\0")[0]) or "nowhere"
