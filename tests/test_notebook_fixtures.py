"""The examples of the rules, cut into cells: the same is found and the same is written as in the script."""

from __future__ import annotations

import ast
import json
import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from gradfix import engine
from gradfix.config import Config
from gradfix.plan import plan_for

FIXTURES = Path(__file__).parent.parent / "fixtures"
PAIRS = sorted(FIXTURES.glob("*/*/before.py"))
FIRST = {file.parent.parent: file for file in reversed(PAIRS)}.values()
CASES = [pytest.param(file, id=f"{file.parent.parent.name}: {file.parent.name}") for file in FIRST]
MAGIC = "%%time\n"


def cells(text: str, chance: random.Random) -> Iterator[str]:
    """A script in pieces that begin with a statement, some of them under a magic."""
    tops = [
        min([one.lineno, *(d.lineno for d in getattr(one, "decorator_list", ()))])
        for one in ast.parse(text).body
    ]
    lines = text.split("\n")
    cuts = [1, *(line for line in sorted({*tops} - {tops[0]}) if chance.random() < 0.5), len(lines) + 1]
    for start, end in pairwise(cuts):
        yield chance.choice(["", "", MAGIC]) + "\n".join(lines[start - 1 : end - 1])


def notebook(text: str, chance: random.Random) -> bytes:
    listed = [
        {"cell_type": "code", "metadata": {}, "outputs": [], "source": cell.splitlines(keepends=True)}
        for cell in cells(text, chance)
    ]
    return json.dumps({"cells": listed, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}).encode()


@pytest.mark.parametrize("file", CASES)
def test_a_script_in_cells_is_mended_as_the_script(file: Path, tmp_path: Path) -> None:
    plan = plan_for(Config(tmp_path, unsafe_fixes=True, extend_select=("ALL",)), follows_imports=False)
    text = file.read_text("utf-8")
    script = engine.fix("a.py", text.encode(), plan)
    cut = engine.fix("a.ipynb", notebook(text, random.Random(file.parent.name)), plan)
    assert [one.message for one in cut.findings] == [one.message for one in script.findings]
    assert script.after is not None and cut.after is not None
    after = ["".join(cell["source"]).removeprefix(MAGIC) for cell in json.loads(cut.after)["cells"]]
    assert "\n".join(after) == script.after.decode()
