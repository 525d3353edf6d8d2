"""Landlock: the kernel refuses this process and its children every write but to the places named."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterable

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
VERSION, PATH_BENEATH = 1, 1
NO_NEW_PRIVS = 38
WRITE_FILE, TRUNCATE, IOCTL_DEV = 1 << 1, 1 << 14, 1 << 15
WRITES = sum(1 << bit for bit in (1, *range(4, 13)))
"""Write to a file; remove and make whatever a folder may hold."""
SINCE = ((2, 1 << 13), (3, TRUNCATE), (5, IOCTL_DEV))
"""Version of Landlock -> what it can refuse besides."""
SCOPES = 3
"""Signals and abstract sockets of those outside, since version 6."""
SCOPED = 6
ATTRIBUTE_SIZES = ((6, 24), (4, 16), (1, 8))


def version() -> int:
    """Of the kernel's Landlock; 0: it has none."""
    if not sys.platform.startswith("linux"):
        return 0
    return max(_call(CREATE_RULESET, None, 0, VERSION), 0)


def _call(number: int, *words: object) -> int:
    wide = [ctypes.c_long(word) if isinstance(word, int) else word for word in words]
    return int(ctypes.CDLL(None, use_errno=True).syscall(ctypes.c_long(number), *wide))


def confine(writable: Iterable[str]) -> bool:
    """From now on nothing is written, made or removed but below these paths; False: the kernel can't."""
    known = version()
    rights = WRITES | sum(right for since, right in SINCE if known >= since)
    return known > 0 and _restrict(known, rights, writable)


def apart() -> bool:
    """From now on no signal and no abstract socket reaches those outside; False: the kernel can't."""
    known = version()
    return known >= SCOPED and _restrict(known, 0, ())


def _restrict(known: int, rights: int, writable: Iterable[str]) -> bool:
    size = next(size for since, size in ATTRIBUTE_SIZES if known >= since)
    scopes = SCOPES if known >= SCOPED else 0
    rules = _call(CREATE_RULESET, struct.pack("QQQ", rights, 0, scopes), size, 0)
    if rules < 0:
        return False
    try:
        for path in writable:
            _allow(rules, path, rights)
        return no_new_privileges() and _call(RESTRICT_SELF, rules, 0) == 0
    finally:
        os.close(rules)


def _allow(rules: int, path: str, rights: int) -> None:
    """Leave a file, or all that is in a folder, as free as it was."""
    try:
        held = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    if not os.path.isdir(path):
        rights &= WRITE_FILE | TRUNCATE | IOCTL_DEV
    _call(ADD_RULE, rules, PATH_BENEATH, struct.pack("=Qi", rights, held), 0)
    os.close(held)


def no_new_privileges() -> bool:
    """What both Landlock and seccomp ask of whoever is not root."""
    return int(ctypes.CDLL(None).prctl(NO_NEW_PRIVS, 1, 0, 0, 0)) == 0
