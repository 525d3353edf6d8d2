"""A short program below the usual imports, and what the tape says of it."""

from __future__ import annotations

import textwrap

from gradfix.source import Source, parse
from gradfix.tape.analysis import Analysis
from gradfix.tape.entries import analyse

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
OFF = {"inplace_on_graph_tensor", "backward_in_no_grad"}
"""What is off unless it is asked for."""


def analysis(body: str) -> Analysis:
    source = parse("case.py", whole(body).encode())
    assert isinstance(source, Source)
    return analyse(source)


def whole(body: str) -> str:
    return HEAD + textwrap.dedent(body)


def kinds(body: str) -> set[str]:
    """The kinds of defects in a program."""
    return {defect.kind for defect in analysis(body).defects} - OFF


def listed(body: str) -> set[str]:
    """The kinds of defects that are listed: no suspects."""
    return {defect.kind for defect in analysis(body).defects if defect.certainty != "suspect"} - OFF


def culprits(body: str, kind: str) -> list[str]:
    """The lines, as they stand there, that are to blame for the defects of one kind."""
    lines = whole(body).splitlines()
    return [lines[one.culprit.line - 1].strip() for one in analysis(body).defects if one.kind == kind]
