"""README's generated parts: tables made from the code, sessions made by running their commands."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from gradfix.defects import Convention
from gradfix.registry import Codemod, codemods
from gradfix.rule import Safety

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PART = r"(?<=<!-- {name} -->\n)(.*?)(?=<!-- end of {name} -->)"
FILE = re.compile(r"<!-- file: (?P<name>\S+) -->\n```(?:python|text)\n(?P<text>.*?)```", re.DOTALL)
HIDDEN = re.compile(r"<!-- file: (?P<name>\S+)\n(?P<text>.*?)-->", re.DOTALL)
SESSION = re.compile(r"(?<=```console\n)(.*?)(?=```\n)", re.DOTALL)
WIDTH = "100"


def _remedy(codemod: Codemod) -> str:
    if codemod.rule.sometimes_unsafe:
        return "safe or unsafe"
    return {Safety.SAFE: "safe", Safety.UNSAFE: "unsafe", None: "by hand"}[codemod.rule.safety]


def _summary(codemod: Codemod) -> str:
    """The first sentence of a rule's documentation, as a cell of a table."""
    opening = " ".join(codemod.docs.partition("\n\n")[0].split())
    sentence = re.match(r".*?[.:](?=\s|$)", opening)
    return (sentence[0] if sentence else opening).rstrip(":.").replace("``", "`").replace("|", "\\|")


def rule_rows() -> Iterator[str]:
    """The table of the rules, from their modules."""
    yield "| code | name | what it is about | fix |\n|---|---|---|---|\n"
    for name, codemod in codemods().items():
        off = "" if codemod.rule.on_by_default else "; off unless selected"
        link = f"[{name}](codemods/{name}.py)"
        yield f"| {codemod.rule.code} | {link} | {_summary(codemod)} | {_remedy(codemod)}{off} |\n"


def convention_rows() -> Iterator[str]:
    """The table of the conventions, as the listing explains them."""
    yield "| letter | taken for granted |\n|---|---|\n"
    for convention in Convention:
        yield f"| {convention.name} | {convention.value} |\n"


def files(text: str) -> Mapping[str, str]:
    """The example files that README shows, and those that it only speaks of."""
    return {found["name"]: found["text"] for kind in (FILE, HIDDEN) for found in kind.finditer(text)}


def played(session: str, folder: Path) -> str:
    """A session with the output that its commands have in a folder."""
    commands = [line[2:] for line in session.splitlines() if line.startswith("$ ")]
    return "".join(f"$ {command}\n{_output(command, folder)}" for command in commands)


def _output(command: str, folder: Path) -> str:
    program, *arguments = shlex.split(command)
    start = {"gradfix": [sys.executable, "-m", "gradfix"], "python": [sys.executable]}[program]
    environ = {**os.environ, "COLUMNS": WIDTH, "NO_COLOR": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*start, *arguments],
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout


def _part(text: str, name: str, rows: Iterator[str]) -> str:
    pattern = re.compile(PART.format(name=name), re.DOTALL)
    assert pattern.search(text), f"README has no part named {name!r}"
    return pattern.sub(lambda _: "".join(rows), text)


def current(text: str, folder: Path) -> str:
    """README as it should be: tables from the code, sessions played in order on the example files."""
    for name, content in files(text).items():
        (folder / name).write_text(content, "utf-8")
    text = _part(text, "rules", rule_rows())
    text = _part(text, "conventions", convention_rows())
    return SESSION.sub(lambda found: played(found[1], folder), text)
