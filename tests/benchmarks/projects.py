"""Whole projects that grow: files, imports, chains and cycles of imports, as the command reads them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from .command import Whole, whole
from .cost import parsed_alone, seconds

HEAD = "import torch\nfrom torch import nn\nfrom torch.nn import functional as F\n"
BLOCK = """
class Block{i}(nn.Module):
    def __init__(self, wide=8):
        super().__init__()
        self.inner = nn.Linear(wide, wide)

    def forward(self, x):
        out = F.relu(self.inner(x))
        out = out + x
        out += 1
        return out
"""


@dataclass(frozen=True)
class Project:
    """A way to grow: the texts by path for a size, and the sizes to try."""

    name: str
    texts: Callable[[int], Mapping[str, str]]
    sizes: tuple[int, ...]


def beside(count: int) -> dict[str, str]:
    """Files that have nothing to do with each other."""
    return {f"block{i}.py": HEAD + BLOCK.format(i=i) for i in range(count)}


def together(count: int) -> dict[str, str]:
    """One file that imports all others, and uses them."""
    imports = "".join(f"from block{i} import Block{i}\n" for i in range(count))
    built = "".join(f"        self.block{i} = Block{i}()\n" for i in range(count))
    called = "".join(f"        x = self.block{i}(x)\n" for i in range(count))
    net = "\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n" + built
    net += "\n    def forward(self, x):\n" + called + "        x += 1\n        return x\n"
    return {**beside(count), "net.py": HEAD + imports + net}


def shared(count: int) -> dict[str, str]:
    """Files that all import the same one."""
    used = "\n\nclass Net{i}(Block0):\n    def forward(self, x):\n        x = super().forward(x)\n"
    used += "        x *= 2\n        return x\n"
    files = {f"net{i}.py": HEAD + "from block0 import Block0\n" + used.format(i=i) for i in range(count)}
    return {**beside(1), **files}


def chained(count: int) -> dict[str, str]:
    """Each file imports the one before it."""
    files = {"block0.py": HEAD + BLOCK.format(i=0)}
    for i in range(1, count):
        block = BLOCK.format(i=i).replace("(nn.Module)", "(Base)")
        files[f"block{i}.py"] = f"{HEAD}from block{i - 1} import Block{i - 1} as Base\n{block}"
    return files


def in_a_circle(count: int) -> dict[str, str]:
    """Each file imports the next one, and the last the first."""
    return {
        f"block{i}.py": HEAD + f"import block{(i + 1) % count}\n" + BLOCK.format(i=i)
        + f"\n\ndef made(x):\n    return block{(i + 1) % count}.Block{(i + 1) % count}()(x)\n"
        for i in range(count)
    }  # fmt: skip


def starred(count: int) -> dict[str, str]:
    """A package whose files import everything from it, and it everything from them."""
    every = "".join(f"from .block{i} import *\n" for i in range(count))
    files = {f"package/{name}": "from . import *\n" + text for name, text in beside(count).items()}
    return {"package/__init__.py": every, **files}


PROJECTS = (
    Project("files beside each other", beside, (25, 50, 100, 200)),
    Project("imports of one file", together, (5, 10, 20, 40)),
    Project("files that share one", shared, (25, 50, 100, 200)),
    Project("a chain of imports", chained, (10, 20, 40, 80)),
    Project("a circle of imports", in_a_circle, (10, 20, 40, 80)),
    Project("a package by stars", starred, (10, 20, 40, 80)),
    Project("a large package", beside, (2500, 5000)),
)


def written(project: Project, size: int, folder: Path) -> list[Path]:
    """A project on the disk."""
    paths = []
    for name, text in {"pyproject.toml": "", **project.texts(size)}.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        paths.append(path)
    return paths[1:]


def measured(project: Project, size: int, repeat: int) -> tuple[float, Whole]:
    """Processor seconds of parsing a project, and what the command takes."""
    with tempfile.TemporaryDirectory() as name:
        contents = [path.read_bytes() for path in written(project, size, Path(name))]
        parse = sum(seconds(partial(parsed_alone, content), repeat) for content in contents)
        return parse, whole(Path(name), repeat)


def table(projects: Iterable[Project] = PROJECTS, repeat: int = 1) -> str:
    """What each takes as it grows: a doubled project should take twice as long."""
    names = ("project", "size", "parse s", "gradfix s", "ratio", "growth", "peak MiB")
    rows = ["{:24s} {:>6s} {:>9s} {:>9s} {:>7s} {:>7s} {:>9s}".format(*names)]
    for project in projects:
        before = 0.0
        for size in project.sizes:
            parse, now = measured(project, size, repeat)
            growth = f"{now.seconds / before:.2f}x" if before > 0 else ""
            rows.append(
                f"{project.name:24s} {size:6d} {parse:9.4f} {now.seconds:9.4f} {now.seconds / parse:7.1f} "
                f"{growth:>7s} {now.peak:9.0f}"
            )
            before = now.seconds
    return "\n".join(rows)
