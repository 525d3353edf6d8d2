"""Which tests go into which file of a folder, and how the project is found from there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from gradfix.regression.mended import Kept
from gradfix.regression.style import formatted
from gradfix.regression.text import file, unlike

CONFTEST = '''"""Finds the project that these tests are about, from whatever folder pytest is started."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[{up}]{down}))
'''


def texts(kept: Sequence[Kept], folder: Path, python: str) -> dict[Path, str]:
    """The new files of tests with what is in them: one for each file that was mended."""
    by_module: dict[str, list[Kept]] = {}
    for one in kept:
        by_module.setdefault(one.mended.shown, []).append(one)
    found: dict[Path, str] = {}
    for shown, group in by_module.items():
        path = free(folder, f"test_{stem(shown)}_gradients", found)
        text = file(list(unlike([one.piece for one in group])), f"Gradients through {shown}.")
        found[path] = formatted(text, path, python)
    found.update(conftest(kept, folder, python) if found else {})
    return found


def stem(shown: str) -> str:
    """What a test of a file is called after."""
    path = Path(shown)
    name = path.parent.name if path.stem == "__init__" else path.stem
    return re.sub(r"\W+", "_", name).strip("_").lower() or "module"


def free(folder: Path, name: str, taken: dict[Path, str]) -> Path:
    """A file of that name that isn't there yet."""
    names = (name if number == 1 else f"{name}_{number}" for number in range(1, 1000))
    paths = (folder / f"{one}.py" for one in names)
    return next(path for path in paths if path not in taken and not path.exists())


def conftest(kept: Sequence[Kept], folder: Path, python: str) -> dict[Path, str]:
    """What lets pytest import the project, where nothing that is there already does."""
    roots = {one.recipe.target.root for one in kept}
    here = folder.absolute()
    root = Path(roots.pop()) if len(roots) == 1 else None
    shared = root and Path(os.path.commonpath([root, here]))
    if root is None or shared is None or shared == here or any(settled(root, here)):
        return {}
    up = len(here.relative_to(shared).parts)
    down = "".join(f' / "{part}"' for part in root.relative_to(shared).parts)
    path = folder / "conftest.py"
    return {path: formatted(CONFTEST.format(up=up, down=down), path, python)}


def settled(root: Path, folder: Path) -> Iterator[bool]:
    """Whether the project has its own way to be found by its tests."""
    for above in (folder, *folder.parents):
        yield (above / "conftest.py").exists() and above in (folder, root)
        yield any((above / name).is_file() for name in ("setup.py", "setup.cfg"))
        yield tells_pytest(above / "pyproject.toml")
        if above == root:
            return


def tells_pytest(settings: Path) -> bool:
    """Whether settings make a package of the project, or say where it is."""
    try:
        text = settings.read_text("utf-8")
    except OSError:
        return False
    return any(word in text for word in ("pythonpath", "[project]", "[tool.poetry]"))


def write(found: dict[Path, str]) -> None:
    """Put new files on disk; none that is there is touched."""
    for path, text in found.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "x", encoding="utf-8", newline="\n") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
