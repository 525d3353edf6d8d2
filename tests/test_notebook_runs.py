"""Notebooks on the command line: listed by cell and line, shown, mended, silenced."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from gradfix.cli import main

MODEL = "import torch\nfrom torch import nn\nmodel = nn.Linear(4, 3)"
HIDDEN = "%time h = torch.sigmoid(model(torch.ones(2, 4)))"
WRITE = "!nvidia-smi\nh += 1"
LOSS = "h.sum().backward()"
BROKEN = "g = torch.sigmoid(model(torch.ones(2, 4)))\ng += 1\ng.sum().backward()"
PYTHON = {"language_info": {"name": "python"}}


@pytest.fixture(autouse=True)
def _there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def written(*sources: str, **top: Any) -> bytes:
    cells: list[dict[str, Any]] = [
        {"cell_type": "markdown", "id": "m", "metadata": {}, "source": ["# torch"]}
    ]
    for number, source in enumerate(sources):
        cell: dict[str, Any] = {
            "cell_type": "code",
            "execution_count": None,
            "id": f"c{number}",
            "metadata": {},
            "outputs": [],
        }
        cells.append({**cell, "source": source.splitlines(keepends=True)})
    whole = {"cells": cells, "metadata": PYTHON, "nbformat": 4, "nbformat_minor": 5, **top}
    return (json.dumps(whole, indent=1) + "\n").encode()


def make(name: str, *sources: str, **top: Any) -> Path:
    Path(name).write_bytes(written(*sources, **top))
    return Path(name)


def gradfix(*arguments: str, stdin: bytes | None = None) -> Result:
    result = CliRunner(env={"COLUMNS": "100"}).invoke(main, [*arguments], input=stdin, prog_name="gradfix")
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def git(*arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *arguments], check=True, capture_output=True)


def findings(*arguments: str) -> Any:
    return json.loads(gradfix("--output-format", "json", *arguments).stdout)


def test_notebooks_are_found_in_a_folder_and_told_of_by_cell_and_line() -> None:
    make("b.ipynb", MODEL, BROKEN)
    Path(".ipynb_checkpoints").mkdir()
    make(".ipynb_checkpoints/b-checkpoint.ipynb", MODEL, BROKEN)
    result = gradfix()
    assert result.stdout.startswith(
        "b.ipynb:cell 3:2:1 GF101 [crashes, certain, safe fix] `g += 1` overwrites"
    )
    assert result.exit_code == 1
    assert "1 finding in 1 file: 1 crashes. --diff shows the fix" in result.stderr


def test_what_leans_on_several_cells_is_likely_as_they_may_be_run_in_another_order() -> None:
    make("b.ipynb", MODEL, HIDDEN, WRITE, LOSS)
    assert gradfix("b.ipynb").stdout == (
        "b.ipynb:cell 4:2:1 GF101 [crashes, likely: H, safe fix] `h += 1` overwrites what sigmoid saved\n"
        "    2 | h += 1   <- overwritten here\n"
        "      in b.ipynb:cell 3\n"
        "    1 | %time h = torch.sigmoid(model(torch.ones(2, 4)))   <- saved here\n"
        "      in b.ipynb:cell 5\n"
        "    1 | h.sum().backward()   <- backward runs here\n"
        "      fix: h = h + 1\n"
        '      torch says: "one of the variables needed for gradient computation has been modified by an\n'
        '                  inplace operation"\n'
        "likely, H: the cells of a notebook are run once, from the first to the last\n"
    )
    assert gradfix("--min-certainty", "certain", "b.ipynb").stdout == ""


def test_what_lies_in_one_cell_is_as_certain_as_in_a_script() -> None:
    make("b.ipynb", MODEL, BROKEN)
    assert [found["certainty"] for found in findings()] == ["certain"]


def test_a_diff_is_one_for_each_cell() -> None:
    make("b.ipynb", MODEL, HIDDEN, WRITE, LOSS, BROKEN)
    result = gradfix("--diff")
    assert result.stdout.splitlines() == [
        "--- a/b.ipynb:cell 4\t",
        "+++ b/b.ipynb:cell 4\t",
        "@@ -1,2 +1,2 @@",
        " !nvidia-smi",
        "-h += 1",
        "+h = h + 1",
        "--- a/b.ipynb:cell 6\t",
        "+++ b/b.ipynb:cell 6\t",
        "@@ -1,3 +1,3 @@",
        " g = torch.sigmoid(model(torch.ones(2, 4)))",
        "-g += 1",
        "+g = g + 1",
        " g.sum().backward()",
    ]
    assert "1 file, 2 hunks, 2 lines added, 2 removed." in result.stderr
    assert "for reading: `git apply --exclude '*.ipynb:*'` takes the rest" in result.stderr


def test_git_takes_the_diff_of_scripts_beside_notebooks() -> None:
    make("b.ipynb", MODEL, BROKEN)
    Path("a.py").write_text(f"{MODEL}\n{BROKEN}\n")
    git("init", "-q")
    Path("all.diff").write_bytes(gradfix("--diff").stdout_bytes)
    git("apply", "--exclude", "*.ipynb:*", "all.diff")
    assert "g = g + 1" in Path("a.py").read_text()


def test_applying_rewrites_the_lines_and_nothing_else() -> None:
    nbformat = pytest.importorskip("nbformat")
    file = make("b.ipynb", MODEL, HIDDEN, WRITE, LOSS)
    before = file.read_text()
    result = gradfix("--apply")
    assert file.read_text() == before.replace('"h += 1"', '"h = h + 1"')
    assert result.stderr == (
        "b.ipynb:cell 4:2: fixed GF101 inplace_overwrites_saved: h = h + 1\n1 finding fixed in 1 file.\n"
    )
    nbformat.validate(nbformat.read(file, as_version=4))
    assert gradfix("--apply").stderr == ""


def test_a_file_without_findings_is_not_touched() -> None:
    file = make("b.ipynb", MODEL, HIDDEN, LOSS)
    before, stamp = file.read_bytes(), file.stat().st_mtime_ns
    assert gradfix("--apply").exit_code == 0
    assert (file.read_bytes(), file.stat().st_mtime_ns) == (before, stamp)


def test_what_is_left_after_applying_stands_where_it_is_now() -> None:
    loop = "opt = torch.optim.SGD(model.parameters(), 0.1)\nfor _ in range(3):\n    "
    step = "model(torch.ones(1, 4)).sum().backward()\n    opt.step()\n"
    by_hand = BROKEN.replace("g +=", "%time g +=")
    make("b.ipynb", MODEL, loop + step + by_hand)
    assert [found["location"]["row"] for found in findings()] == [3, 6]
    result = gradfix("--apply", "--output-format", "concise")
    assert result.stdout.startswith("b.ipynb:cell 3:7:7: GF101")
    assert "1 finding fixed in 1 file, 1 left" in result.stderr


def test_a_line_that_a_magic_runs_is_to_be_mended_by_hand() -> None:
    make(
        "b.ipynb", MODEL, "g = torch.sigmoid(model(torch.ones(2, 4)))", "%time g += 1", LOSS.replace("h", "g")
    )
    (found,) = findings()
    assert found["fix"] is None
    assert found["by_hand"] == "g = g + 1, by hand: a rewrite would change a line that IPython reads"
    assert gradfix("--apply").exit_code == 1


def test_json_counts_in_cells() -> None:
    make("b.ipynb", MODEL, HIDDEN, WRITE, LOSS)
    (found,) = findings()
    assert (found["cell"], found["location"], found["noqa_row"]) == (4, {"row": 2, "column": 1}, 2)
    assert [(step["cell"], step["location"]["row"]) for step in found["related"]] == [(3, 1), (4, 2), (5, 1)]
    (edit,) = found["fix"]["edits"]
    assert (edit["cell"], edit["location"]["row"]) == (4, 2)


def placed(text: str, region: tuple[int, int, int, int]) -> str:
    """The stretch of a file between lines and columns that count from 1."""
    line, column, end_line, end_column = region
    assert line == end_line
    return text.split("\n")[line - 1][column - 1 : end_column - 1]


def test_tools_that_open_the_file_are_told_of_places_in_it() -> None:
    text = make("b.ipynb", MODEL, HIDDEN, WRITE, LOSS).read_text()
    (result,) = json.loads(gradfix("--output-format", "sarif").stdout)["runs"][0]["results"]
    keys = ("startLine", "startColumn", "endLine", "endColumn")
    region = result["locations"][0]["physicalLocation"]["region"]
    assert placed(text, tuple(region[key] for key in keys)) == "h += 1"
    assert result["message"]["text"].startswith("`h += 1` overwrites what sigmoid saved (cell 4, line 2)")
    (replacement,) = result["fixes"][0]["artifactChanges"][0]["replacements"]
    deleted = placed(text, tuple(replacement["deletedRegion"][key] for key in keys))
    assert (deleted, replacement["insertedContent"]["text"]) == ("+=", "= h +")
    annotation = gradfix("--output-format", "github").stdout
    assert f"file=b.ipynb,line={region['startLine']}," in annotation


def test_suggestions_of_reviewdog_give_the_file_that_applying_gives() -> None:
    file = make("b.ipynb", MODEL, BROKEN)
    (found,) = json.loads(gradfix("--output-format", "rdjson").stdout)["diagnostics"]
    (suggestion,) = found["suggestions"]
    rows = file.read_text().split("\n")
    start, end = suggestion["range"]["start"], suggestion["range"]["end"]
    assert start["line"] == end["line"]
    row = rows[start["line"] - 1]
    rows[start["line"] - 1] = row[: start["column"] - 1] + suggestion["text"] + row[end["column"] - 1 :]
    gradfix("--apply")
    assert file.read_text() == "\n".join(rows)


def test_suppressions_and_excludes_hold_in_notebooks() -> None:
    make("a.ipynb", MODEL, BROKEN.replace("g += 1", "g += 1  # gradfix: ignore[GF101]"))
    make("b.ipynb", "# gradfix: skip-file", MODEL, BROKEN)
    make("c.ipynb", MODEL, BROKEN)
    assert [found["filename"] for found in findings()] == ["c.ipynb"]
    assert findings("--extend-exclude", "*.ipynb") == []
    Path("pyproject.toml").write_text('[tool.gradfix.per-file-ignores]\n"*.ipynb" = ["GF101"]\n')
    assert findings() == []


def test_adding_suppressions_writes_them_into_the_cells() -> None:
    file = make("b.ipynb", MODEL, HIDDEN, WRITE, LOSS)
    before = file.read_text()
    assert gradfix("--add-ignore").exit_code == 0
    assert file.read_text() == before.replace('"h += 1"', '"h += 1  # gradfix: ignore[GF101]"')
    assert findings() == []


def test_a_doubtful_suppression_is_told_of_by_its_cell() -> None:
    make("b.ipynb", MODEL, "x = 1\ny = 2  # gradfix: ignore[GF999]")
    assert "b.ipynb:cell 3:2: warning" in gradfix().stderr


def test_standard_input_is_a_notebook_where_its_name_says_so() -> None:
    content = written(MODEL, BROKEN)
    result = gradfix("-", "--stdin-filename", "x.ipynb", "--output-format", "concise", stdin=content)
    assert result.stdout.startswith("x.ipynb:cell 3:2:1: GF101")
    after = gradfix("-", "--apply", "--stdin-filename", "x.ipynb", stdin=content).stdout
    assert after.encode() == content.replace(b"g += 1", b"g = g + 1")


def test_standard_input_without_a_name_is_a_notebook_where_it_looks_like_one() -> None:
    content = written(MODEL, BROKEN)
    assert gradfix("-", "--output-format", "concise", stdin=content).stdout.startswith(
        "<stdin>.ipynb:cell 3:2:1: GF101"
    )
    after = gradfix("-", "--apply", stdin=content).stdout
    assert after.encode() == content.replace(b"g += 1", b"g = g + 1")


def test_since_a_revision_only_what_is_new_in_a_notebook_counts() -> None:
    make("b.ipynb", MODEL, BROKEN)
    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "begin")
    make(
        "b.ipynb",
        "%matplotlib inline",
        MODEL,
        "x = 1\n\n",
        BROKEN,
        BROKEN.replace("g ", "k ").replace("g.", "k."),
    )
    assert [(found["cell"], found["location"]["row"]) for found in findings("--since", "HEAD")] == [(6, 2)]


def test_a_broken_notebook_is_named_with_its_cell_and_the_reason() -> None:
    make("a.ipynb", MODEL, "x = 1\ndef f(:")
    make("b.ipynb", MODEL, BROKEN)
    Path("c.ipynb").write_text('{"torch": ')
    result = gradfix()
    assert "a.ipynb:cell 3:2: failed (parse): invalid syntax" in result.stderr
    assert "c.ipynb:1: failed (parse): not JSON: Expecting value" in result.stderr
    assert "b.ipynb:cell 3:2:1 GF101" in result.stdout
    assert result.exit_code == 2
    assert (
        "::error title=gradfix,file=a.ipynb::a.ipynb:cell 3:2: parse failed"
        in gradfix("--output-format", "github").stdout
    )


def test_a_notebook_in_another_language_is_passed_over_quietly() -> None:
    make("r.ipynb", "library(torch)\nx <- 1", metadata={"kernelspec": {"language": "R", "name": "ir"}})
    result = gradfix()
    said = "0 findings in 1 file (1 skipped).\n"
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", said)
    told = gradfix("--verbose").stderr
    assert told == "r.ipynb: skipped: a notebook in R\n0 findings in 1 file (1 skipped).\n"


def test_a_page_shows_the_rewrite_of_each_cell() -> None:
    make("b.ipynb", MODEL, HIDDEN, WRITE, LOSS, BROKEN)
    gradfix("--report", "page.html")
    page = Path("page.html").read_text()
    assert "<h2>b.ipynb:cell 4</h2>" in page and "<h2>b.ipynb:cell 6</h2>" in page
    assert '<span class="added">+g = g + 1</span>' in page


def test_the_hooks_take_notebooks() -> None:
    identify = pytest.importorskip("identify.identify")
    hooks = yaml.safe_load((Path(__file__).parent.parent / ".pre-commit-hooks.yaml").read_text("utf-8"))
    assert all(set(hook["types_or"]) & identify.tags_from_filename("a.ipynb") for hook in hooks)


@pytest.mark.parametrize("command", [("run", "b.ipynb"), ("--diff", "--verify-cmd", "b.ipynb", "b.ipynb")])
def test_a_notebook_is_not_run_and_it_is_said_what_to_do(command: tuple[str, ...]) -> None:
    make("b.ipynb", MODEL, BROKEN)
    result = gradfix(*command)
    assert result.exit_code == 2
    assert "%%gradfix" in result.stderr and "nbconvert" in result.stderr


@pytest.mark.torch
def test_a_rewrite_of_a_notebook_that_was_to_be_verified_is_not_written() -> None:
    file = make("b.ipynb", MODEL, BROKEN)
    before = file.read_bytes()
    result = gradfix("--apply", "--verify", "b.ipynb")
    assert result.exit_code == 2
    assert "b.ipynb: could not run (a notebook is not run from here" in result.stderr
    assert file.read_bytes() == before
