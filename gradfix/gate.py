"""The byte-level test before parsing: can this file concern autograd at all?"""

from __future__ import annotations

import re
from collections.abc import Iterable

from gradfix.tape.effects.frameworks import ROWS, Row, signs

SIGNS = re.compile(rb"torch|backward|requires_grad|zero_grad|no_grad|\0|\A\xff\xfe|\A\xfe\xff")
"""What such a file mentions; NUL bytes and UTF-16 hide it, so they pass and parsing names them."""
FRAMEWORKS = tuple({sign for name, row in ROWS.items() for sign in signs(name, row)})
"""What a file may mention instead that leaves the rest to a framework: each all of these words."""


def passes(content: bytes, rows: Iterable[tuple[str, Row]] = ()) -> bool:
    """Say whether a file has to be parsed; `rows` are the user's own frameworks."""
    if SIGNS.search(content) is not None:
        return True
    own = (sign for name, row in rows for sign in signs(name, row))
    return any(all(word in content for word in sign) for sign in (*FRAMEWORKS, *own))
