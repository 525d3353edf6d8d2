"""Whole programs, as people ask about them: the defect that is to blame is named, and no other."""

from __future__ import annotations

import textwrap

import pytest

from gradfix.source import Source, parse
from gradfix.tape.interpreter import analyse

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
OFF = {"inplace_on_graph_tensor", "backward_in_no_grad"}


def kinds(body: str) -> set[str]:
    source = parse("case.py", (HEAD + textwrap.dedent(body)).encode())
    assert isinstance(source, Source)
    return {defect.kind for defect in analyse(source).defects} - OFF


PROGRAMS = {
    "outputs gathered from a carried state are no leak: the next backward wants them": (
        """
        rnn, head = nn.RNN(3, 4), nn.Linear(4, 1)
        state = None
        for _ in range(3):
            out, state = rnn(torch.ones(5, 2, 3), state)
            outs = []
            for t in range(5):
                outs.append(head(out[t]))
            torch.stack(outs).mean().backward()
        """,
        {"backward_twice"},
    ),
}


@pytest.mark.parametrize("name", PROGRAMS, ids=str)
def test_the_defect_to_blame_is_named(name: str) -> None:
    body, blamed = PROGRAMS[name]
    assert kinds(body) == blamed
