"""The command line: what it prints, writes and returns, on a tape small enough to foresee."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import toy
from click.testing import CliRunner, Result

from gradfix.cli import main
from gradfix.trace.processes import descendants

ON_TOY = """
import signal, toy
from gradfix.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs start without it
toy.install(setattr)
main(prog_name="gradfix")
"""
GATED = "import torch\n"


@pytest.fixture(autouse=True)
def _there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    toy.install(monkeypatch.setattr)


def gradfix(*arguments: str, stdin: bytes | None = None) -> Result:
    result = CliRunner().invoke(main, [*arguments], input=stdin, prog_name="gradfix")
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", ON_TOY, *arguments]


def environment() -> dict[str, str]:
    tests = Path(toy.__file__).parent
    return os.environ | {"PYTHONPATH": os.pathsep.join((str(tests), str(tests.parent))), "COLUMNS": "80"}


def make(name: str, text: str = "x += y\n") -> Path:
    """A file that concerns autograd."""
    file = Path(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes((GATED + text).encode())
    return file


def codes(result: Result) -> list[str]:
    """What a run with --output-format json has found."""
    return [each["code"] for each in json.loads(result.stdout)]


def found(*arguments: str) -> list[str]:
    return codes(gradfix("--output-format", "json", *arguments))


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        pytest.param("wy", "why", id="why"),
        pytest.param("rnu", "run", id="run"),
        pytest.param("serve", "server", id="server"),
    ],
)
def test_a_word_that_is_nearly_a_command_is_guessed_at(typed: str, meant: str) -> None:
    result = gradfix(typed)
    assert result.exit_code == 2
    assert f"is `gradfix {meant}` meant?" in result.stderr


def test_a_folder_that_is_nearly_called_as_a_command_is_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "a.py").write_text("import torch\n")
    assert gradfix("runs").exit_code == 0


def test_listing_names_what_it_finds_and_changes_nothing() -> None:
    file = make("a.py")
    result = gradfix()
    assert (result.exit_code, file.read_text()) == (1, GATED + "x += y\n")
    assert "a.py:2:1" in result.stdout and "TOY1" in result.stdout and "x = x + y" in result.stdout


def test_where_nothing_is_found_that_is_all_that_is_said() -> None:
    make("a.py", "x = 1\n")
    Path("b.py").write_text("x += y\n")
    result = gradfix()
    said = "0 findings in 2 files (1 without autograd).\n"
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", said)


def test_diff_shows_what_apply_writes(tmp_path: Path) -> None:
    make("a.py")
    make("b/ü ñ.py", "x += y\r\nz -= y")
    make("c.py", "x = 1\n")
    diff = gradfix("--diff")
    assert diff.exit_code == 1
    subprocess.run(["git", "init", "-q", "other"], check=True)
    for file in ("a.py", "b/ü ñ.py"):
        make(f"other/{file}").write_bytes(Path(file).read_bytes())
    subprocess.run(["git", "apply"], input=diff.stdout_bytes, cwd="other", check=True)
    applied = gradfix("--apply", "a.py", "b", "c.py")
    assert applied.exit_code == 1
    for file in ("a.py", "b/ü ñ.py"):
        assert Path(file).read_bytes() == Path("other", file).read_bytes()
    assert Path("b/ü ñ.py").read_bytes() == GATED.encode() + b"x = x + y\r\nz -= y"


@pytest.mark.parametrize("tracked", [True, False], ids=["in a repository", "in none"])
def test_a_diff_of_files_above_begins_at_a_folder_that_git_can_apply_it_in(tracked: bool) -> None:
    if tracked:
        subprocess.run(["git", "init", "-q"], check=True)
    files = [make("a.py"), make("deep/sub/a.py"), make("deep/b.py")]
    os.chdir("deep/sub")
    diff = gradfix("--diff", "../..")
    assert "--- a/deep/sub/a.py\n" in diff.stdout and "--- a/a.py\n" in diff.stdout
    told = "git -C ../.. apply"
    assert f"`{told}` takes it" in diff.stderr
    subprocess.run(told.split(), input=diff.stdout_bytes, check=True)
    os.chdir("../..")
    assert {file.read_text() for file in files} == {GATED + "x = x + y\n"}


@pytest.mark.parametrize("first", ["a link", "z link"], ids=["found before it", "found after it"])
def test_a_diff_by_way_of_links_names_the_files_that_git_changes(first: str) -> None:
    subprocess.run(["git", "init", "-q"], check=True)
    file = make("real/file.py")
    os.symlink("file.py", f"real/{first}.py")
    os.symlink("real", "folder")
    for path in ("real", "folder", os.path.abspath("folder"), f"real/{first}.py"):
        diff = gradfix("--diff", path)
        assert diff.stdout.splitlines()[0] == "--- a/real/file.py"
        subprocess.run(["git", "apply", "--check"], input=diff.stdout_bytes, check=True)
    subprocess.run(["git", "apply"], input=diff.stdout_bytes, check=True)
    assert file.read_text() == GATED + "x = x + y\n"


def test_a_diff_of_files_below_is_applied_where_it_was_asked_for() -> None:
    subprocess.run(["git", "init", "-q"], check=True)
    make("deep/sub/a.py")
    os.chdir("deep")
    diff = gradfix("--diff", "../deep/sub", os.path.abspath("sub"))
    assert "--- a/sub/a.py\n" in diff.stdout and "begin at" not in diff.stderr
    subprocess.run(["git", "apply"], input=diff.stdout_bytes, check=True)
    assert Path("sub/a.py").read_text() == GATED + "x = x + y\n"


def test_an_empty_diff_is_no_error_even_where_something_is_found() -> None:
    make("a.py", "x *= y\n")
    result = gradfix("--diff")
    assert (result.exit_code, result.stdout) == (0, "")


def test_apply_returns_whether_findings_remain_and_is_idempotent() -> None:
    file = make("a.py", "x += y\n")
    assert gradfix("--apply").exit_code == 0
    text = file.read_text()
    assert text == GATED + "x = x + y\n"
    second = gradfix("--apply")
    assert (second.exit_code, second.stdout, file.read_text()) == (0, "", text)
    make("b.py", "x += y\nx *= y\n")
    assert gradfix("--apply").exit_code == 1


def test_apply_lists_what_remains_where_the_new_text_has_it() -> None:
    make("a.py", "x += y; z *= y\n")
    result = gradfix("--apply", "--output-format", "concise")
    assert "a.py:2:12" in result.stdout and "TOY1" not in result.stdout


def test_fix_is_another_word_for_apply() -> None:
    file = make("a.py", "x += y\n")
    assert gradfix("--fix").exit_code == 0
    assert file.read_text() == GATED + "x = x + y\n"


def test_what_was_fixed_is_named_by_file_line_rule_and_rewrite() -> None:
    make("a.py", "x += y\nz -= y\n")
    make("b/b.py", "\nq += y\n")
    told = gradfix("--apply", "--unsafe-fixes").stderr
    assert told == (
        "a.py:2: fixed TOY1 safe_toy: x = x + y\n"
        "a.py:3: fixed (unsafe) TOY2 unsafe_toy: z = z - y\n"
        "b/b.py:3: fixed TOY1 safe_toy: q = q + y\n"
        "3 findings fixed in 2 files.\n"
    )


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        pytest.param([], 0, id="findings"),
        pytest.param(["--diff"], 0, id="a diff"),
        pytest.param(["nothing.py"], 2, id="a file that fails"),
        pytest.param(["--select", "TOX"], 2, id="a wrong call"),
    ],
)
def test_exit_zero_is_about_findings_and_not_about_failures(arguments: list[str], code: int) -> None:
    make("a.py")
    assert gradfix("--exit-zero", *arguments).exit_code == code


def test_certain_fixes_are_applied_and_the_rest_is_listed() -> None:
    file = make("a.py", "x += 1\nz += y\n")
    result = gradfix("--apply", "--fix-certainty", "certain", "--output-format", "json")
    assert (result.exit_code, codes(result)) == (1, ["TOY1"])
    assert file.read_text() == GATED + "x += 1\nz = z + y\n"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param([], ["TOY1", "TOY2", "TOY3"], id="the default rules"),
        pytest.param(["--select", "TOY1,TOY4"], ["TOY1", "TOY4"], id="select"),
        pytest.param(
            ["--select", "toy1", "--select", "Quiet_Toy"],
            ["TOY1", "TOY4"],
            id="select, twice, by name, in any case",
        ),
        pytest.param(["--ignore", "TOY1"], ["TOY2", "TOY3"], id="ignore"),
        pytest.param(["--extend-select", "TOY4"], ["TOY1", "TOY2", "TOY3", "TOY4"], id="extend-select"),
    ],
)
def test_rules_are_selected(arguments: list[str], expected: list[str]) -> None:
    make("a.py", "x += y\nx -= y\nx *= y\nx **= y\n")
    assert found(*arguments) == expected


def test_the_configuration_holds_and_the_command_line_comes_on_top() -> None:
    make("a.py", "x += y\nx -= y\n")
    make("tests/b.py", "x += y\nx -= y\n")
    make("old/c.py")
    Path("pyproject.toml").write_text(
        "[tool.gradfix]\nunsafe-fixes = true\nextend-exclude = ['old']\n"
        "[tool.gradfix.per-file-ignores]\n'tests/' = ['TOY1']\n"
    )
    assert found() == ["TOY1", "TOY2", "TOY2"]
    assert found("--ignore", "TOY2") == ["TOY1"]
    assert gradfix("--apply", "--no-unsafe-fixes").exit_code == 1
    assert Path("a.py").read_text() == GATED + "x = x + y\nx -= y\n"
    assert gradfix("--apply").exit_code == 0
    assert Path("tests/b.py").read_text() == GATED + "x += y\nx = x - y\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["--select", "TOX"], ["select: 'TOX' names no rule"], id="an unknown rule"),
        pytest.param(["--explain", "TOX"], ["no rule 'TOX'"], id="an unknown rule to explain"),
        pytest.param(["--since", "nonsense"], ["Error: --since: "], id="an unknown revision"),
        pytest.param(["--select", "to1"], ["did you mean TOY1?"], id="a slip in a code"),
        pytest.param(["--ignore", "Saef_toy"], ["did you mean safe_toy?"], id="a slip in a name"),
        pytest.param(["--explain", "saef_toy"], ["did you mean safe_toy?"], id="a slip in what to explain"),
        pytest.param(["--select", ""], ["--select", "names no rule"], id="nothing selected"),
        pytest.param(["--ignore", " ,"], ["--ignore", "names no rule"], id="nothing ignored"),
        pytest.param(["--verify=foo"], ["--verify=foo", "--verify=lenient"], id="a way to verify"),
        pytest.param(["run", "--diff", "--apply", "a.py"], ["--diff and --apply"], id="two modes to run"),
        pytest.param(
            ["--diff", "--output-format", "json"], ["--diff", "--output-format json"], id="two reports"
        ),
        pytest.param(["--diff", "--statistics"], ["--diff", "--statistics"], id="a diff and a count"),
        pytest.param(["--nonsense"], ["--nonsense"], id="an unknown option"),
        pytest.param(["--jobs", "0"], ["--jobs"], id="no job"),
        pytest.param(["-", "a.py"], ["stands alone"], id="standard input with files"),
        pytest.param(["-", "--add-ignore"], ["standard input"], id="standard input to silence"),
        pytest.param(["--config", "bad.toml"], ["bad.toml", "'x'"], id="a bad configuration"),
        pytest.param(
            ["--exclude", "["], ["exclude: the pattern '['", "nothing closes"], id="an open bracket"
        ),
        pytest.param(
            ["--extend-exclude", "a,!/"], ["extend-exclude", "names no file"], id="a pattern of nothing"
        ),
    ],
)
def test_a_wrong_call_is_named(arguments: list[str], words: list[str]) -> None:
    Path("bad.toml").write_text("[tool.gradfix]\nx = 1\n")
    result = gradfix(*arguments)
    assert result.exit_code == 2
    assert all(word in result.stderr for word in words)
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    "modes",
    [("--diff", "--apply"), ("--apply", "--diff"), ("--add-ignore", "--diff"), ("--apply", "--add-ignore")],
)
def test_two_modes_are_refused_and_nothing_is_written(modes: tuple[str, str]) -> None:
    file = make("a.py")
    result = gradfix(*modes)
    assert (result.exit_code, result.stdout, file.read_text()) == (2, "", GATED + "x += y\n")
    assert all(mode in result.stderr for mode in modes) and "exclude each other" in result.stderr


def test_a_word_after_two_dashes_is_a_path() -> None:
    make("--verify=foo")
    assert found("--", "--verify=foo") == ["TOY1"]


def test_help_mentions_the_lenient_judge() -> None:
    assert "--verify=lenient" in gradfix("--help").stdout


def test_files_of_another_repository_have_no_past_here() -> None:
    make("other/a.py")
    Path("here").mkdir()
    subprocess.run(["git", "init", "-q", "here"], check=True)
    identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    first = ("commit", "-q", "--allow-empty", "-m", "first")
    subprocess.run(["git", "-C", "here", *identity, *first], check=True)
    os.chdir("here")
    result = gradfix("--since", "HEAD", "../other")
    assert (result.exit_code, result.stdout) == (2, "")
    assert os.path.join("other", "a.py") in result.stderr and "--since" in result.stderr


def test_one_bad_file_never_stops_a_run() -> None:
    good = make("z.py")
    bad = {
        "syntax.py": b"torch = (",
        "python2.py": b"import torch\nprint 'x'\n",
        "cookie.py": b"# coding: nonsense\nimport torch\n",
        "latin.py": b"import torch  # \xe9\n",
        "nul.py": b"import torch\0\n",
        "utf16.py": "import torch\n".encode("utf-16"),
        "nested.py": b"import torch\n" + b"(" * 5000 + b")" * 5000,
        "crash.py": b"import torch  # tape: crash\n",
    }
    for name, content in bad.items():
        Path(name).write_bytes(content)
    Path("large.py").write_bytes(b"import torch\n" + b"x = 1  # " + b"y" * 10_000_000 + b"\n")
    Path("folder.py").mkdir()
    result = gradfix("--apply", ".", "vanished.py")
    assert result.exit_code == 2
    for name, content in bad.items():
        assert name in result.stderr
        assert Path(name).read_bytes() == content
    assert "vanished.py" in result.stderr and "large.py" not in result.stderr
    assert "Python 2" in result.stderr and "UTF-16" in result.stderr
    assert good.read_text() == GATED + "x = x + y\n"


def test_what_is_new_since_a_revision() -> None:
    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *identity, *arguments], check=True, capture_output=True)

    git("init", "-q")
    file, same = make("a.py", "x += y\n"), make("same.py")
    git("add", "-A")
    git("commit", "-q", "-m", "first")
    file.write_text(GATED + "new = 1\nx += y\nz += y\n")
    make("b.py")
    result = gradfix("--since", "HEAD", "--output-format", "concise")
    assert result.exit_code == 1
    assert "a.py:4:1" in result.stdout and "b.py:2:1" in result.stdout
    assert "a.py:3:1" not in result.stdout and "same.py" not in result.stdout
    gradfix("--since", "HEAD", "--apply")
    assert file.read_text() == GATED + "new = 1\nx += y\nz = z + y\n"
    assert same.read_text() == GATED + "x += y\n"


def test_an_old_code_base_can_start_clean() -> None:
    file = make("a.py", "x += y\nx *= z  # why\n")
    assert gradfix("--add-ignore").exit_code == 0
    assert (
        file.read_text()
        == GATED + "x += y  # gradfix: ignore[TOY1]\nx *= z  # why  # gradfix: ignore[TOY3]\n"
    )
    assert found() == []


def test_a_suppression_that_silences_nothing_is_reported_when_verbose() -> None:
    make("a.py", "x = y  # gradfix: ignore\npass\n")
    assert gradfix().output == "0 findings in 1 file.\n"
    assert "silences nothing" in gradfix("--verbose").stderr
    assert "nothing happens here" in gradfix("--verbose").stderr


def test_a_suppression_that_may_be_misread_is_warned_about_once_and_changes_no_exit_code() -> None:
    make("a.py", "x += y  # gradfix: ignore[TOY1, TOX]\n")
    result = gradfix("--select", "TOY1")
    warning = "a.py:2: warning (`gradfix: ignore[TOY1, TOX]`): 'TOX' names no rule, see --list-rules\n"
    said = f"{warning}0 findings in 1 file.\n"
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", said)


def test_standard_input_is_listed_under_the_name_that_is_given() -> None:
    result = gradfix("-", "--stdin-filename", "here/a.py", stdin=b"import torch\nx += y\n")
    assert result.exit_code == 1
    assert "here/a.py:2:1" in result.stdout


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(b"import torch\r\nx += y", b"import torch\r\nx = x + y", id="rewritten"),
        pytest.param(b"import torch\nx = 1\n", b"import torch\nx = 1\n", id="nothing to rewrite"),
        pytest.param(b"x = 1\n", b"x = 1\n", id="nothing to do with autograd"),
        pytest.param(b"torch = (\n", b"torch = (\n", id="not Python"),
    ],
)
def test_standard_input_comes_out_whole_with_apply(text: bytes, expected: bytes) -> None:
    assert gradfix("-", "--apply", stdin=text).stdout_bytes == expected


@pytest.mark.parametrize(
    ("text", "said", "code"),
    [
        pytest.param(b"import torch\nx += y\n", "1 finding fixed in 1 file.\n", 0, id="all of it"),
        pytest.param(
            b"import torch\nx += y\nx *= y\n", "1 finding fixed in 1 file, 1 left: ", 1, id="a part of it"
        ),
        pytest.param(b"import torch\nx *= y\n", "0 findings fixed in 0 files, 1 left: ", 1, id="nothing"),
    ],
)
def test_what_is_mended_of_standard_input_is_counted(text: bytes, said: str, code: int) -> None:
    result = gradfix("-", "--apply", stdin=text)
    assert (result.exit_code, said in result.stderr) == (code, True)


def test_standard_input_as_a_diff() -> None:
    result = gradfix("-", "--diff", stdin=b"import torch\nx += y\n")
    assert result.exit_code == 1
    assert "-x += y\n+x = x + y\n" in result.stdout


def test_rules_are_listed_and_explained() -> None:
    listed = gradfix("--list-rules")
    assert listed.exit_code == 0
    assert [line.split()[0] for line in listed.stdout.splitlines()] == [each.rule.code for each in toy.ALL]
    assert "unsafe fix" in listed.stdout and "no fix" in listed.stdout and "off by default" in listed.stdout
    assert gradfix("--explain", "TOY2").stdout == gradfix("--explain", "unsafe_toy").stdout
    assert gradfix("--explain", "TOY2").stdout.endswith("What unsafe_toy is about.\n\nIn detail.\n")


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_the_first_answers_come_at_once(option: str) -> None:
    code = (
        "import sys; from gradfix.cli import main\ntry: main()\nfinally: print(*sys.modules, file=sys.stderr)"
    )
    started = [sys.executable, "-c", code, option]
    done = subprocess.run(started, env=environment(), capture_output=True, text=True, check=True)
    loaded = set(done.stderr.split())
    assert "gradfix" in done.stdout
    assert not loaded & {"libcst", "rich", "torch", "pathspec", "unidiff", "multiprocessing"}


def test_nothing_that_is_read_is_imported_and_torch_is_not_needed() -> None:
    make("a.py", "raise SystemExit('was run')\nx += y\n")
    code = "import sys; sys.modules['torch'] = None\n" + ON_TOY
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("Traceback")) == (1, 0)
    assert "TOY1" in done.stdout


def test_a_reader_that_leaves_early_is_no_trouble() -> None:
    make("a.py", "x += y\n" * 3000)
    with subprocess.Popen(
        command("--color", "never"), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        assert b"a.py" in process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()
    assert b"Traceback" not in said and b"Exception" not in said


def test_ctrl_c_stops_at_once_and_leaves_every_file_whole(tmp_path: Path) -> None:
    for number in range(300):
        make(f"{number:03}.py", "x += y\n" * 400)
    with subprocess.Popen(
        command("--apply", "--jobs", "2"), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        while process.poll() is None and not descendants(process.pid):
            time.sleep(0.1)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=300)
    assert process.returncode == 130
    assert b"Traceback" not in said
    old, new = GATED + "x += y\n" * 400, GATED + "x = x + y\n" * 400
    left = {file.read_text() for file in tmp_path.glob("*.py")}
    assert old in left and left <= {old, new}
    assert not list(tmp_path.glob("*.gradfix"))


@pytest.mark.parametrize(
    ("text", "drawn"),
    [pytest.param("# tape: slow\n", True, id="slow work"), pytest.param("x += y\n", False, id="quick work")],
)
def test_a_progress_bar_on_a_terminal_after_a_second(text: str, drawn: bool) -> None:
    for number in range(4):
        make(f"{number}.py", text)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command("--jobs", "1"), env=environment(), stdout=subprocess.DEVNULL, stderr=theirs
    )
    os.close(theirs)
    said = "".join(iter(lambda: _read(ours), ""))
    os.close(ours)
    process.wait()
    assert ("━" in said, "4/4" in said) == (drawn, drawn)


def _read(terminal: int) -> str:
    """What a terminal has received; nothing once the other side is closed."""
    try:
        return os.read(terminal, 65536).decode()
    except OSError:
        return ""


def test_no_progress_bar_for_a_pipe() -> None:
    for number in range(4):
        make(f"{number}.py", "# tape: slow\n")
    done = subprocess.run(command("--jobs", "1"), env=environment(), capture_output=True, check=True)
    assert done.stderr == b"0 findings in 4 files.\n"


def test_help_names_the_other_commands() -> None:
    told = CliRunner().invoke(main, ["--help"]).output
    assert all(f"gradfix {name}" in " ".join(told.split()) for name in ("run", "why", "server"))
