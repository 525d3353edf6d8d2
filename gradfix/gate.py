"""The byte-level test before parsing: can this file concern autograd at all?"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradfix.tape.effects.frameworks import Row

SIGNS = re.compile(
    rb"torch|backward|requires_grad|zero_grad|no_grad|lightning|fastai|accelerat|deepspeed|mmengine|skorch"
    rb"|\0|\A\xff\xfe|\A\xfe\xff"
)
"""What such a file mentions; NUL bytes and UTF-16 hide it, so they pass and parsing names them."""


def passes(content: bytes, rows: Iterable[tuple[str, Row]] = ()) -> bool:
    """Say whether a file has to be parsed; `rows` are the user's own frameworks."""
    return SIGNS.search(content) is not None
