"""The pages for those who carry on: each file that they name exists, each truth has its test.

`UPDATE_README=1 pytest tests/test_pages.py` writes the list of truths anew.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ARCHITECTURE = ROOT / "docs" / "architecture.md"
PAGES = (ROOT / "CONTRIBUTING.md", ARCHITECTURE)
TRUTHS = ROOT / "tests" / "tape" / "machine" / "test_torch_truths.py"
LIST = re.compile(r"(?<=<!-- truths -->\n)(.*?)(?=<!-- end of truths -->)", re.DOTALL)
NAMED = [
    pytest.param(page, link, id=f"{page.name}: {link}")
    for page in PAGES
    for link in sorted(set(re.findall(r"\]\((?!http|#)([^)]+)\)", page.read_text("utf-8"))))
]
COMMANDS = sorted(
    {name for page in PAGES for name in re.findall(r"python -m ([\w.]+)", page.read_text("utf-8"))}
)


def truths() -> Iterator[str]:
    """One line for each test, in the words of its name; of a table of cases, what each case is."""
    tree = ast.parse(TRUTHS.read_text("utf-8"))
    tables = {
        ast.unparse(node.target): [ast.literal_eval(key) for key in node.value.keys if key is not None]
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Dict)
    }
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            sentence = node.name.removeprefix("test_").replace("_", " ")
            cases = [case for decorator in node.decorator_list for case in _cases(decorator, tables)]
            yield f"- {sentence}{': ' if cases else ''}{', '.join(cases)}\n"


def _cases(decorator: ast.expr, tables: dict[str, list[str]]) -> Iterator[str]:
    """What the cases of a parametrized test are called."""
    if not isinstance(decorator, ast.Call) or not ast.unparse(decorator.func).endswith("parametrize"):
        return
    ids = next((word.value for word in decorator.keywords if word.arg == "ids"), None)
    if isinstance(ids, ast.Name):
        yield from tables[ids.id]
    elif ids is not None:
        yield from ast.literal_eval(ids)
    elif isinstance(decorator.args[1], ast.List):
        for case in decorator.args[1].elts:
            words = case.keywords if isinstance(case, ast.Call) else []
            named = next((word.value for word in words if word.arg == "id"), case)
            yield str(ast.literal_eval(named))


@pytest.mark.parametrize(("page", "link"), NAMED)
def test_a_file_that_a_page_names_exists(page: Path, link: str) -> None:
    assert (page.parent / link).exists()


@pytest.mark.parametrize("module", COMMANDS)
def test_a_command_that_a_page_names_exists(module: str) -> None:
    place = ROOT.joinpath(*module.split("."))
    assert place.with_suffix(".py").is_file() or (place / "__main__.py").is_file()


def test_the_page_lists_each_truth_of_torch_with_its_test() -> None:
    text = ARCHITECTURE.read_text("utf-8")
    wanted = LIST.sub(lambda _: "".join(truths()), text)
    if os.environ.get("UPDATE_README"):
        ARCHITECTURE.write_text(wanted, "utf-8")
        return
    assert wanted == text, "stale: UPDATE_README=1 pytest tests/test_pages.py"


def test_the_rooms_of_the_tape_are_the_ones_that_there_are() -> None:
    rooms = {path.name for path in (ROOT / "gradfix" / "tape").iterdir() if (path / "__init__.py").exists()}
    told = set(re.findall(r"^\| \[(\w+)\]\(\.\./gradfix/tape/\w+\)", ARCHITECTURE.read_text("utf-8"), re.M))
    assert told == rooms
