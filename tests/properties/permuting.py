"""`python -m tests.properties.permuting FOLDER`: what stands beside a definition changes nothing of it.

The functions and classes of a file are put in another order, where none needs the other to be defined, and
strange ones are put between them that nobody calls. Every finding has to stay as it was.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import random
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from gradfix.gate import passes
from gradfix.source import Source, parse
from gradfix.tape.entries import analyse

Definition: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef"
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
Told: TypeAlias = "tuple[int, int, str, str, str]"
"""A finding: the line and column of its culprit, its kind, the culprit's text, and how sure it is."""
STRANGERS = (
    "def {name}():\n    import torch\n    x = torch.ones(2)\n    x += 1\n    return x.cuda()\n",
    "def {name}(model):\n    for p in model.parameters():\n        p.requires_grad = False\n",
    "def {name}(on):\n    import torch\n    torch.set_grad_enabled(on)\n",
    "def {name}(x):\n    import torch\n    torch.set_grad_enabled(False)\n    return x.exp_()\n",
    "def {name}(net, x):\n    net.register_forward_hook(print)\n    return x.register_hook(print)\n",
    """def {name}(net, data):
    import torch
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    for x in data:
        optimizer.zero_grad()
        net(x).sum().backward()
        optimizer.step()
    scheduler.step()
    return optimizer
""",
    """def {name}(optimizer, model, loss):
    loss.backward(retain_graph=True)
    optimizer.step()
    model.eval()
    return [p.grad.clone() for p in model.parameters() if p.grad is not None], loss.grad_fn, loss.is_leaf
""",
    """class {name}:
    def __init__(self, model=None, optimizer=None):
        self.model, self.optimizer, self.layers = model, optimizer, []
    def forward(self, x):
        self.x = x
        x += 1
        return self.model(x)
    def update(self, x):
        self.optimizer.zero_grad()
        self.forward(x).sum().backward()
        self.optimizer.step()
    def train(self, batches):
        for batch in batches:
            self.update(batch)
        self.model.requires_grad_(False)
""",
    """def {name}(a, b, c, d, e):
    for i in range(9):
        if a[i]:
            a, b = b.exp(), a * c
        elif b[i]:
            b += a
        while c:
            if d:
                c = [c, d][i]
            e = e(a, b, c) if a else b
    return a.sum().backward(), e
""",
)
"""Definitions that nobody calls, and that would do much to the rest if it mattered."""


@dataclass(frozen=True)
class Part:
    """Some whole lines of a file: one definition, or what stands between two."""

    lines: tuple[str, ...]
    first: int
    node: Definition | None = None


@dataclass(frozen=True)
class Variant:
    """A file in another order, and the line that each of the original's has become."""

    text: str
    lines: dict[int, int]


@dataclass(frozen=True)
class Difference:
    """What is said of a file and not of its variant, or the other way round."""

    path: Path
    variant: Variant
    lost: frozenset[Told]
    gained: frozenset[Told]


def parts(text: str) -> list[Part]:
    """A file as its definitions and the rest, in their order."""
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    found: list[Part] = []
    done = 0
    for node in ast.parse(text).body:
        first = min((one.lineno for one in getattr(node, "decorator_list", ())), default=node.lineno) - 1
        end = node.end_lineno or node.lineno
        if not isinstance(node, DEFINITIONS) or first < done or not _alone(lines[end - 1], node):
            continue
        found.append(Part(tuple(lines[done:first]), done))
        found.append(Part(tuple(lines[first:end]), first, node))
        done = end
    return [*found, Part(tuple(lines[done:]), done)]


def _alone(line: str, node: ast.stmt) -> bool:
    """Whether nothing stands on a definition's last line behind it."""
    behind = line.encode()[node.end_col_offset :].decode().strip()
    return node.col_offset == 0 and (not behind or behind.startswith("#"))


def _now(node: Definition) -> Iterator[ast.AST]:
    """What is run when something is defined: not the bodies of functions."""
    if isinstance(node, ast.ClassDef):
        yield from (*node.decorator_list, *node.bases, *node.keywords)
        for part in node.body:
            yield from _now(part) if isinstance(part, DEFINITIONS) else [part]
    else:
        yield from (*node.decorator_list, node.args)
        yield from [node.returns] if node.returns is not None else []


def _names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    return (one.id for node in nodes for one in ast.walk(node) if isinstance(one, ast.Name))


def permuted(text: str, rng: random.Random, strangers: int) -> Variant:
    """The definitions of each stretch without other statements in another order, and strange ones between."""
    found = parts(text)
    names = {part.node.name for part in found if part.node is not None}
    rows: list[Part | str] = []
    run: list[Part] = []
    for part in found:
        if part.node is not None:
            run.append(part)
        elif any(line.strip() and not line.lstrip().startswith("#") for line in part.lines):
            rows += [*_shuffled(run, rng), part]
            run = []
        else:
            run.append(part)
    rows += _shuffled(run, rng)
    places = [i for i, row in enumerate(rows) if isinstance(row, Part) and row.node is not None]
    taken = names | set(_names([ast.parse(text)])) | set(dir(builtins))
    for place in sorted((rng.choice([*places, len(rows)]) for _ in range(strangers)), reverse=True):
        rows.insert(place, _stranger(rng, taken))
    return _variant(rows)


def _stranger(rng: random.Random, taken: set[str]) -> str:
    name = next(
        name for _ in range(1000) if (name := f"{rng.choice('AMZamz')}{rng.randrange(10**6)}") not in taken
    )
    return "\n" + rng.choice(STRANGERS).format(name=name) + "\n"


def _shuffled(run: Sequence[Part], rng: random.Random) -> list[Part]:
    """Parts in another order in which each is still defined before what needs it."""
    blanks = [one for one in run if one.node is None]
    left = [(one, one.node) for one in run if one.node is not None]
    by_name = {node.name: node for _, node in left}
    needs = {id(node): _needs(node, by_name) for _, node in left}
    done: list[Part] = []
    while left:
        free = [
            (part, node)
            for i, (part, node) in enumerate(left)
            if not any(
                one.name == node.name or one.name in needs[id(node)] or node.name in needs[id(one)]
                for _, one in left[:i]
            )
        ]
        left.remove(chosen := rng.choice(free))
        done.append(chosen[0])
    return [*done, *blanks]


def _needs(node: Definition, by_name: Mapping[str, Definition]) -> set[str]:
    """The names that have to be there when something is defined: with those that what it calls may read."""
    now = list(_now(node))
    found = set(_names(now))
    calls = (one for part in now for one in ast.walk(part) if isinstance(one, ast.Call))
    open_ = set(_names([*node.decorator_list, *calls])) & by_name.keys()
    while open_:
        more = set(_names([by_name[open_.pop()]])) - found
        found |= more
        open_ |= more & by_name.keys()
    return found


def _variant(rows: Iterable[Part | str]) -> Variant:
    lines: list[str] = []
    mapped: dict[int, int] = {}
    for row in rows:
        if isinstance(row, str):
            lines += row.splitlines(keepends=True)
        else:
            mapped.update({row.first + i + 1: len(lines) + i + 1 for i in range(len(row.lines))})
            lines += row.lines
    return Variant("".join(lines), mapped)


def said(text: str) -> frozenset[Told] | None:
    """The findings of a text; None where it can't be read."""
    source = parse("program.py", text.encode("utf-8", "surrogatepass"))
    if not isinstance(source, Source):
        return None
    analysis = analyse(source)
    lines = text.split("\n")
    return frozenset(
        (one.culprit.line, one.culprit.column, one.kind, lines[one.culprit.line - 1].strip(), one.certainty)
        for one in analysis.defects
    )


def compared(path: Path, before: frozenset[Told], variant: Variant) -> Difference | None:
    """What a variant changes of what is said of a text."""
    after = said(variant.text)
    if after is None:
        return None
    back = {new: old for old, new in variant.lines.items()}
    mapped = frozenset((back[told[0]], *told[1:]) for told in after if told[0] in back)
    if mapped == before:
        return None
    return Difference(path, variant, before - mapped, mapped - before)


@dataclass
class Tally:
    """What came of a run."""

    files: int = 0
    findings: int = 0
    variants: int = 0
    differences: list[Difference] = field(default_factory=list)


def tried(path: Path, text: str, rng: random.Random, variants: int, tally: Tally) -> None:
    """Compare a file with some variants of it."""
    before = said(text)
    if before is None:
        return
    tally.files += 1
    tally.findings += len(before)
    for strangers in range(variants):
        tally.variants += 1
        found = compared(path, before, permuted(text, rng, 2 * strangers + 1))
        if found is not None:
            tally.differences.append(found)


def chosen(folder: Path, files: int, rng: random.Random) -> Iterator[tuple[Path, str]]:
    """As many files as wanted that the gate lets pass and that have definitions."""
    paths, seen = sorted(folder.rglob("*.py")), set[str]()
    rng.shuffle(paths)
    for path in paths:
        if files == 0:
            return
        try:
            content = path.read_bytes()
            text = content.decode("utf-8")
            usable = passes(content) and len(parts(text)) > 3
        except (OSError, ValueError, SyntaxError, RecursionError):
            continue
        if usable and text not in seen and "\r" not in text and "\f" not in text:
            files -= 1
            seen.add(text)
            yield path, text


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.properties.permuting", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=300)
    parser.add_argument("--variants", type=int, default=4, help="of each file; each has two more strangers")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="a folder for the variants that differ")
    options = parser.parse_args(arguments)
    rng, tally = random.Random(options.seed), Tally()
    for path, text in chosen(options.folder, options.files, rng):
        tried(path, text, rng, options.variants, tally)
    for i, one in enumerate(tally.differences):
        print(one.path, *(f"\n  - {told}" for told in one.lost), *(f"\n  + {told}" for told in one.gained))
        if options.keep:
            (options.keep / f"{i}.py").write_text(one.variant.text, "utf-8")
    unlike = len({one.path for one in tally.differences})
    print(f"{tally.files} files, {tally.findings} findings, {tally.variants} permutations: "
          f"{len(tally.differences)} differ, of {unlike} files")  # fmt: skip
    return 1 if tally.differences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
