"""Tells a value that the program only compares with None from one that it goes on to use."""

from __future__ import annotations

import dis
import functools
from types import CodeType, FrameType

FAILS = ("LOAD_ASSERTION_ERROR", "LOAD_COMMON_CONSTANT")
"""What an assert that does not hold begins with."""


def only_asked(frame: FrameType) -> bool:
    """Whether what a frame is about to get is compared with None and nothing else, in no assert."""
    return _compared(frame.f_code, frame.f_lasti)


@functools.lru_cache(maxsize=512)
def _compared(code: CodeType, at: int) -> bool:
    found = list(dis.get_instructions(code))
    index = next((number for number, one in enumerate(found) if one.offset == at), len(found))
    after = found[index + 1 : index + 6]
    names = [one.opname for one in after]
    if names[:2] == ["LOAD_CONST", "IS_OP"] and after[0].argval is None:
        del after[:2]
    elif not names or not names[0].endswith("_NONE"):
        return False
    if not after:
        return True
    reached = {one.offset for one in after[1:3]} | {after[0].argval}
    return not any(one.opname in FAILS and one.offset in reached for one in found)
