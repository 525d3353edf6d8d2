"""seccomp: the calls that Landlock lets through, refused or handed to a doorman who looks at them."""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
import sys
from dataclasses import dataclass

from gradfix.trace.landlock import no_new_privileges

LOAD, EQUAL, AT_LEAST, ANY_BIT, AND, RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
NUMBER, MACHINE, ARGUMENTS = 0, 4, 16
ALLOW, ASK, REFUSE = 0x7FFF0000, 0x7FC00000, 0x00050000
SET_FILTER, NEW_LISTENER = 1, 8
FOREIGN = 0x40000000
"""System calls of the second, 32-bit kind that x86-64 has."""
UNIX, INET, INET6, NETLINK = 1, 2, 10, 16
STREAM, KIND, TCP = 1, 0xF, 6
FAST_OPEN = 0x20000000
SET_FLAGS, SET_ATTRIBUTES = 0x40086602, 0x401C5820


@dataclass(frozen=True, slots=True)
class Machine:
    """How a processor's Linux numbers its calls."""

    audit: int
    seccomp: int
    socket: int
    ioctl: int
    connect: int
    flagged: dict[int, int]
    """Calls that may open a connection while sending -> the argument with their flags."""
    truncate: int
    paths: dict[int, tuple[int | None, int | None]]
    """Calls that change what is said of a file -> arguments with a folder's number, and with the path."""


def _of(names: str, numbers: str) -> dict[str, int]:
    return dict(zip(names.split(), map(int, numbers.split()), strict=True))


NAMED: dict[tuple[int | None, int | None], str] = {
    (None, 0): "setxattr lsetxattr removexattr lremovexattr chmod chown lchown utime utimes",
    (0, None): "fsetxattr fremovexattr fchmod fchown",
    (0, 1): "fchmodat fchownat futimesat utimensat fchmodat2 setxattrat removexattrat file_setattr",
}
PATHS = {name: where for where, names in NAMED.items() for name in names.split()}
NEW = "fchmodat2 setxattrat removexattrat file_setattr"
NEW_NUMBERS = "452 463 466 469"
X86 = _of(
    "setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr chmod fchmod chown fchown lchown"
    f" utime utimes fchownat futimesat fchmodat utimensat {NEW}",
    f"188 189 190 197 198 199 90 91 92 93 94 132 235 260 261 268 280 {NEW_NUMBERS}",
)
ARM = _of(
    "setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr fchmod fchmodat fchownat fchown"
    f" utimensat {NEW}",
    f"5 6 7 14 15 16 52 53 54 55 88 {NEW_NUMBERS}",
)
MACHINES = {
    "x86_64": Machine(
        audit=0xC000003E, seccomp=317, socket=41, ioctl=16, connect=42, flagged={44: 3, 46: 2, 307: 3},
        truncate=76, paths={number: PATHS[name] for name, number in X86.items()},
    ),
    "aarch64": Machine(
        audit=0xC00000B7, seccomp=277, socket=198, ioctl=29, connect=203, flagged={206: 3, 211: 2, 269: 3},
        truncate=45, paths={number: PATHS[name] for name, number in ARM.items()},
    ),
}  # fmt: skip
IO_URING = 425


def machine() -> Machine | None:
    """This processor, where its calls are known."""
    known = MACHINES.get(platform.machine()) if sys.platform.startswith("linux") else None
    return known if sys.maxsize > 1 << 32 else None


class Program:
    """The filter, put together block by block: for each call a verdict."""

    def __init__(self) -> None:
        self.lines: list[tuple[int, int, int, int]] = []

    def add(self, code: int, value: int, then: int = 0, otherwise: int = 0) -> None:
        """One instruction."""
        self.lines.append((code, then, otherwise, value))

    def argument(self, index: int) -> None:
        """Load the lower half of an argument."""
        self.add(LOAD, ARGUMENTS + 8 * index)

    def call(self, number: int, *block: tuple[int, int, int, int]) -> None:
        """What is to be done about one call."""
        self.add(LOAD, NUMBER)
        self.add(EQUAL, number, 0, len(block))
        self.lines.extend(block)

    def bytes(self) -> bytes:
        """As the kernel reads it."""
        return b"".join(struct.pack("HBBI", *line) for line in self.lines)


def line(code: int, value: int, then: int = 0, otherwise: int = 0) -> tuple[int, int, int, int]:
    """One instruction of a block."""
    return (code, then, otherwise, value)


NO = line(RETURN, REFUSE | errno.EACCES)
YES = line(RETURN, ALLOW)


def argument(index: int) -> tuple[int, int, int, int]:
    """Load the lower half of an argument."""
    return line(LOAD, ARGUMENTS + 8 * index)


def program(of: Machine, asked: bool, truncates: bool) -> bytes:
    """All rules; `asked`: somebody looks at calls that name a path or an address, else they are refused."""
    made = Program()
    made.add(LOAD, MACHINE)
    made.add(EQUAL, of.audit, 1, 0)
    made.lines.append(NO)
    made.add(LOAD, NUMBER)
    made.add(AT_LEAST, FOREIGN, 0, 1)
    made.lines.append(NO)
    doubtful = line(RETURN, ASK) if asked else NO
    for number in (of.connect, *of.paths):
        made.call(number, doubtful)
    made.call(IO_URING, line(RETURN, REFUSE | errno.ENOSYS))
    if truncates:
        made.call(of.truncate, NO)
    made.call(of.ioctl, argument(1), line(EQUAL, SET_FLAGS, 1), line(EQUAL, SET_ATTRIBUTES, 0, 1), NO, YES)
    for number, flags in of.flagged.items():
        made.call(number, argument(flags), line(ANY_BIT, FAST_OPEN, 0, 1), NO, YES)
    made.call(of.socket, *_sockets())
    made.lines.append(YES)
    return made.bytes()


def _sockets() -> tuple[tuple[int, int, int, int], ...]:
    """Streams between processes and over TCP, and asking the kernel about its network: nothing else."""
    return (
        argument(0), line(EQUAL, NETLINK, 9), line(EQUAL, UNIX, 5), line(EQUAL, INET, 1),
        line(EQUAL, INET6, 0, 7), argument(2), line(EQUAL, TCP, 1), line(EQUAL, 0, 0, 4),
        argument(1), line(AND, KIND), line(EQUAL, STREAM, 0, 1), YES, NO,
    )  # fmt: skip


def install(asked: bool, truncates: bool) -> int:
    """Put the filter before this process; the listener of whoever is asked, else 0; -1: it can't be."""
    of = machine()
    if of is None or not no_new_privileges():
        return -1
    text = program(of, asked, truncates)
    held = ctypes.create_string_buffer(text, len(text))
    whole = struct.pack("HxxxxxxQ", len(text) // 8, ctypes.addressof(held))
    flags = NEW_LISTENER if asked else 0
    kernel = ctypes.CDLL(None, use_errno=True)
    return int(kernel.syscall(*map(ctypes.c_long, (of.seccomp, SET_FILTER, flags)), whole))
