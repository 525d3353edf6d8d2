"""Makes the pages: `python -m docs [FOLDER]` builds them, strictly, into a folder (`build/pages/site`)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from docs.pages import SCHEMAS, nav, pages
from docs.shown import ROOT
from gradfix.explain import PAGES

COLUMNS = "84"
"""How wide a listing is."""


def config(repository: str) -> dict[str, object]:
    """What the site generator has to know; JSON is YAML."""
    look = [_palette("light", "default", "sun", "dark"), _palette("dark", "slate", "moon", "light")]
    return {
        "site_name": "gradfix",
        "site_url": f"{PAGES}/",
        "site_description": "Finds the places where PyTorch code breaks its own gradients",
        "extra": {"social": [{"icon": "fontawesome/brands/github", "link": repository}]},
        "docs_dir": "pages",
        "site_dir": "site",
        "extra_css": ["pages.css"],
        "theme": {"name": "material", "font": False, "palette": look, "features": FEATURES},
        "markdown_extensions": [
            "attr_list",
            "tables",
            {"toc": {"permalink": True}},
            {"pymdownx.highlight": {"anchor_linenums": True}},
            "pymdownx.superfences",
            "pymdownx.details",
        ],
        "nav": nav(),
    }


def _palette(scheme: str, name: str, icon: str, other: str) -> dict[str, object]:
    """Colours, as the reader's system has them or as he chooses."""
    toggle = {"icon": f"lucide/{icon}", "name": f"Switch to {other}"}
    return {
        "media": f"(prefers-color-scheme: {scheme})",
        "scheme": name,
        "primary": "indigo",
        "toggle": toggle,
    }


FEATURES = ["search.highlight", "content.code.copy", "navigation.top", "navigation.footer"]


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "pages").resolve()
    os.environ["COLUMNS"] = COLUMNS
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    repository = project["urls"]["Repository"]
    shutil.rmtree(folder / "pages", ignore_errors=True)
    for path, text in pages(repository):
        file = folder / "pages" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    shutil.copytree(SCHEMAS, folder / "pages" / "schemas")
    shutil.copy(Path(__file__).with_name("pages.css"), folder / "pages")
    (folder / "mkdocs.yml").write_text(json.dumps(config(repository), indent=1), "utf-8")
    build = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    sys.exit(subprocess.run(build, cwd=folder, check=False).returncode)


if __name__ == "__main__":
    main()
