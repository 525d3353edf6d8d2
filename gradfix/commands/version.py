"""Which gradfix this is."""

from __future__ import annotations

import re
from pathlib import Path


def version() -> str:
    """The installed version; in a checkout that was never installed, the one in its pyproject.toml."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed("gradfix")
    except PackageNotFoundError:
        project = Path(__file__).resolve().parents[2] / "pyproject.toml"
        found = re.search(r'^version = "(.+)"$', project.read_text("utf-8"), re.MULTILINE)
        return found[1] if found else "unknown"
