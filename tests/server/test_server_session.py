"""A server in a process of its own, and pygls' own client: what an editor is told, and when."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from editor import MODERN, NOWHERE, PLAIN, Editor, applied
from lsprotocol import types

from gradfix.explain import address

BROKEN = """\
import torch

x = torch.ones(3, requires_grad=True)
y = x.exp()
y += 1
y.sum().backward()
"""
MENDED = BROKEN.replace("y += 1", "y = y + 1")
UNSAFE = """\
import torch

z = torch.ones(2, 4, requires_grad=True)
left, right = (both := z * 3).chunk(2, dim=1)
left[:, 0] = 0
(left * right + both.sum()).sum().backward()
"""
HALF = "#\n#\n" + BROKEN.replace("y = ", "\n\ny = ").replace("y.sum()", "y.sum(")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    """One server for all that don't need their own."""
    editor = Editor(tmp_path_factory.mktemp("workspace"))
    yield editor
    assert editor.leave() == 0


@pytest.fixture
def editor(shared: Editor) -> Iterator[Editor]:
    """With nothing open."""
    yield shared
    for uri in [*shared.published]:
        if uri in shared.versions:
            shared.close(uri)
    shared.versions.clear()
    shared.log.clear()
    shared.seen.clear()


def codes(diagnostics: Sequence[types.Diagnostic]) -> list[tuple[object, int]]:
    """The rules that are broken, each with its line from 1."""
    return [(each.code, each.range.start.line + 1) for each in diagnostics]


def edits(action: types.CodeAction) -> Sequence[object]:
    """What an action changes in its one document."""
    assert action.edit is not None and action.edit.document_changes is not None
    (change,) = action.edit.document_changes
    assert isinstance(change, types.TextDocumentEdit)
    return change.edits


def at(line: int, character: int = 0) -> types.Range:
    """A place, its line from 1."""
    return types.Range(types.Position(line - 1, character), types.Position(line - 1, character))


def test_a_finding_is_shown_with_its_rule_its_page_and_its_evidence(editor: Editor, tmp_path: Path) -> None:
    uri = editor.open(tmp_path / "a.py", BROKEN)
    (shown,) = editor.shown(uri)
    assert (shown.code, shown.source, shown.severity) == ("GF101", "gradfix", types.DiagnosticSeverity.Error)
    assert shown.message == "`y += 1` overwrites what exp saved [crashes, certain]"
    assert shown.range == types.Range(types.Position(4, 0), types.Position(4, 6))
    assert shown.code_description is not None
    assert shown.code_description.href == address("inplace_overwrites_saved")
    related = [(one.location.range.start.line + 1, one.message) for one in shown.related_information or ()]
    assert related == [(4, "saved here"), (5, "overwritten here"), (6, "backward runs here")]


def test_what_is_mended_while_typing_is_no_longer_shown(editor: Editor, tmp_path: Path) -> None:
    uri = editor.open(tmp_path / "a.py", BROKEN)
    assert codes(editor.shown(uri)) == [("GF101", 5)]
    editor.type(uri, MENDED)
    assert codes(editor.shown(uri)) == []


def test_of_several_texts_in_a_row_the_last_one_counts(editor: Editor, tmp_path: Path) -> None:
    uri = editor.open(tmp_path / "a.py", MENDED)
    for number in range(20):
        editor.type(uri, f"{MENDED}# {number}\n")
    editor.type(uri, "#\n" + BROKEN)
    assert codes(editor.shown(uri)) == [("GF101", 6)]


def test_while_a_text_is_half_typed_what_was_found_stays_on_its_lines(editor: Editor, tmp_path: Path) -> None:
    uri = editor.open(tmp_path / "a.py", BROKEN)
    editor.shown(uri)
    editor.type(uri, HALF)
    (shown,) = editor.shown(uri)
    assert codes([shown]) == [("GF101", 9)]
    related = [(one.location.range.start.line + 1, one.message) for one in shown.related_information or ()]
    assert related == [(8, "saved here"), (9, "overwritten here"), (10, "backward runs here")]
    assert editor.offered(uri, at(9)) == []
    assert "overwrites what backward still needs" in editor.hover(uri, 8, 2)
    assert editor.log == []
    editor.type(uri, BROKEN)
    assert codes(editor.shown(uri)) == [("GF101", 5)]


def test_a_safe_fix_is_preferred_and_makes_the_text_that_apply_makes(editor: Editor, tmp_path: Path) -> None:
    uri = editor.open(tmp_path / "a.py", BROKEN)
    (shown,) = editor.shown(uri)
    fix, suppress, fix_all = editor.offered(uri, shown.range)
    assert (fix.title, fix.is_preferred) == ("gradfix (GF101): y = y + 1", True)
    assert fix.kind == types.CodeActionKind.QuickFix
    assert list(fix.diagnostics or ()) == [shown]
    assert applied(BROKEN, edits(fix)) == MENDED
    assert fix_all.kind == "source.fixAll.gradfix"
    assert applied(BROKEN, edits(fix_all)) == MENDED
    assert (suppress.title, suppress.is_preferred) == ("gradfix (GF101): Suppress on this line", False)


def test_an_unsafe_fix_says_why_and_is_neither_preferred_nor_among_all(
    editor: Editor, tmp_path: Path
) -> None:
    uri = editor.open(tmp_path / "a.py", UNSAFE)
    assert codes(editor.shown(uri)) == [("GF108", 5)]
    fix, suppress = editor.offered(uri, at(5))
    assert fix.title.startswith("gradfix (GF108): ")
    assert "(unsafe: " in fix.title
    assert fix.is_preferred is False
    assert suppress.title == "gradfix (GF108): Suppress on this line"


def test_fix_all_applies_no_unsafe_fix_even_where_the_configuration_does(
    editor: Editor, tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.gradfix]\nunsafe-fixes = true\n")
    both = BROKEN + UNSAFE
    uri = editor.open(tmp_path / "a.py", both)
    assert codes(editor.shown(uri)) == [("GF101", 5), ("GF108", 11)]
    (fix_all,) = editor.offered(uri, NOWHERE, ["source.fixAll"])
    assert applied(both, edits(fix_all)) == MENDED + UNSAFE


@pytest.mark.parametrize(
    ("only", "kinds"),
    [
        pytest.param(None, {"quickfix", "source.fixAll.gradfix"}, id="everything"),
        pytest.param(["quickfix"], {"quickfix"}, id="quick fixes"),
        pytest.param(["source"], {"source.fixAll.gradfix"}, id="what concerns the source"),
        pytest.param(["source.fixAll.gradfix"], {"source.fixAll.gradfix"}, id="all that gradfix fixes"),
        pytest.param(["source.fixAll.ruff", "refactor"], set(), id="what others do"),
    ],
)
def test_only_what_is_asked_for_is_offered(
    only: Sequence[str] | None, kinds: set[str], editor: Editor, tmp_path: Path
) -> None:
    uri = editor.open(tmp_path / "a.py", BROKEN)
    editor.shown(uri)
    assert {str(getattr(one.kind, "value", one.kind)) for one in editor.offered(uri, at(5), only)} == kinds


def test_the_comment_that_suppresses_a_finding_does(editor: Editor, tmp_path: Path) -> None:
    uri = editor.open(tmp_path / "a.py", BROKEN)
    editor.shown(uri)
    (suppress,) = [each for each in editor.offered(uri, at(5)) if "Suppress" in each.title]
    silenced = applied(BROKEN, edits(suppress))
    assert "y += 1  # gradfix: ignore[GF101]\n" in silenced
    editor.type(uri, silenced)
    assert codes(editor.shown(uri)) == []
    assert "overwrites what backward still needs" in editor.hover(uri, 4, 28)
    assert editor.hover(uri, 0, 0) == ""


def test_a_comment_that_may_not_silence_what_was_meant_is_doubted(editor: Editor, tmp_path: Path) -> None:
    uri = editor.open(tmp_path / "a.py", BROKEN.replace("y += 1", "y += 1  # ä gradfix: ignore[GF999]"))
    finding, doubt = editor.shown(uri)
    assert (finding.code, doubt.code) == ("GF101", None)
    assert doubt.message.startswith("`gradfix: ignore[GF999]`: 'GF999' names no rule")
    assert doubt.range == types.Range(types.Position(4, 12), types.Position(4, 34))


def test_hovering_over_a_finding_says_what_to_do_and_what_its_rule_is_about(
    editor: Editor, tmp_path: Path
) -> None:
    uri = editor.open(tmp_path / "a.py", BROKEN)
    editor.shown(uri)
    editor.offered(uri, at(5))
    told = editor.hover(uri, 4, 2)
    assert "fix: `y = y + 1`" in told
    assert 'torch says: "one of the variables needed' in told
    assert "GF101 inplace_overwrites_saved (safe or unsafe fix)" in told


@pytest.mark.parametrize(
    ("text", "place"),
    [
        pytest.param(BROKEN.replace("y +", "s = '😀'; y +"), (4, 10), id="behind characters of two units"),
        pytest.param("\ufeff" + BROKEN, (4, 0), id="with a byte order mark"),
        pytest.param(BROKEN.replace("\n", "\r\n"), (4, 0), id="with the line ends of Windows"),
        pytest.param(BROKEN.replace("\n", "\r"), (4, 0), id="with the line ends of old Macs"),
        pytest.param(BROKEN.replace("y = ", "\fs = '\x85\u2028'; y = "), (4, 0), id="with ends of no line"),
        pytest.param("# coding: latin-1\n" + BROKEN.replace("\n", "  # ä\n"), (5, 0), id="in Latin 1"),
    ],
)
def test_places_and_edits_are_right(
    text: str, place: tuple[int, int], editor: Editor, tmp_path: Path
) -> None:
    """The edit of a fix, in UTF-16, makes of a text what the one of plain ASCII becomes."""
    uri = editor.open(tmp_path / "a.py", text)
    (shown,) = editor.shown(uri)
    assert (shown.range.start.line, shown.range.start.character) == place
    actions = editor.offered(uri, shown.range)
    for action in (actions[0], actions[-1]):
        assert applied(text, edits(action)) == text.replace("y += 1", "y = y + 1")


def test_the_nearest_configuration_counts_as_on_the_command_line(editor: Editor, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.gradfix]\nignore = ['GF101']\nexclude = ['left_out']\n")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "pyproject.toml").write_text("[tool.gradfix]\nselect = ['GF101']\n")
    assert codes(editor.shown(editor.open(tmp_path / "a.py", BROKEN))) == []
    assert codes(editor.shown(editor.open(tmp_path / "left_out" / "a.py", UNSAFE))) == []
    assert codes(editor.shown(editor.open(tmp_path / "inner" / "a.py", BROKEN + UNSAFE))) == [("GF101", 5)]


def test_a_configuration_that_changes_on_disk_counts_at_once(editor: Editor, tmp_path: Path) -> None:
    settings = tmp_path / "pyproject.toml"
    settings.write_text("[tool.gradfix]\nignore = ['GF101']\n")
    uri = editor.open(tmp_path / "a.py", BROKEN)
    assert codes(editor.shown(uri)) == []
    settings.write_text("[tool.gradfix]\n")
    editor.changed_on_disk(settings)
    assert codes(editor.again(uri)) == [("GF101", 5)]
    (watched,) = editor.watched
    assert watched.method == types.WORKSPACE_DID_CHANGE_WATCHED_FILES


def test_a_configuration_that_cannot_be_read_is_told_once_and_what_was_found_stays(
    editor: Editor, tmp_path: Path
) -> None:
    uri = editor.open(tmp_path / "a.py", BROKEN)
    editor.shown(uri)
    (tmp_path / "pyproject.toml").write_text("[tool.gradfix]\nselct = ['GF1']\n")
    for _ in range(2):
        editor.save(uri)
        editor.until(lambda: editor.seen)
    (told,) = editor.seen
    assert "tool.gradfix has no key 'selct'" in told
    (tmp_path / "pyproject.toml").unlink()
    editor.type(uri, "#\n" + BROKEN)
    assert codes(editor.shown(uri)) == [("GF101", 6)]


def test_what_a_file_imports_is_read_from_what_is_open_before_what_is_on_disk(
    editor: Editor, tmp_path: Path
) -> None:
    broken = "import torch\n\n\ndef change(x):\n    return torch.exp(x)\n"
    healthy = broken.replace("torch.exp(x)", "x * 2")
    caller = BROKEN.replace("x.exp()", "change(x)").replace("torch\n", "torch; from other import change\n")
    other = tmp_path / "other.py"
    other.write_text(healthy)
    uri = editor.open(tmp_path / "a.py", caller)
    assert codes(editor.shown(uri)) == []
    unsaved = editor.open(other, broken)
    (shown,) = editor.again(uri)
    assert shown.code == "GF101"
    assert unsaved in {one.location.uri for one in shown.related_information or ()}
    editor.type(unsaved, healthy)
    assert codes(editor.again(uri)) == []
    editor.type(unsaved, broken)
    assert len(editor.again(uri)) == 1
    editor.close(unsaved)
    assert codes(editor.again(uri)) == []
    other.write_text(broken)
    editor.changed_on_disk(other)
    assert len(editor.again(uri)) == 1
    other.unlink()
    editor.changed_on_disk(other)
    assert codes(editor.again(uri)) == []


def test_a_file_that_is_renamed_takes_its_findings_along(editor: Editor, tmp_path: Path) -> None:
    old = editor.open(tmp_path / "old.py", BROKEN)
    assert len(editor.shown(old)) == 1
    editor.close(old)
    new = editor.open(tmp_path / "new.py", BROKEN)
    assert len(editor.shown(new)) == 1
    assert list(editor.published[old].diagnostics) == []


def test_a_text_without_a_file_is_looked_at_by_itself(editor: Editor) -> None:
    uri = editor.open("untitled:Untitled-1", BROKEN)
    assert codes(editor.shown(uri)) == [("GF101", 5)]
    assert "y = y + 1" in editor.offered(uri, at(5))[0].title


def test_an_earlier_version_that_an_editor_shows_beside_a_file_is_not_looked_at(
    editor: Editor, tmp_path: Path
) -> None:
    past = editor.open(f"git:{tmp_path}/a.py?HEAD", BROKEN)
    editor.shown(editor.open(tmp_path / "a.py", BROKEN))
    assert past not in editor.published
    assert editor.offered(past, at(5)) == []


def test_what_is_no_python_is_not_looked_at(editor: Editor, tmp_path: Path) -> None:
    other = editor.open(tmp_path / "a.ipynb", BROKEN, "json")
    editor.shown(editor.open(tmp_path / "a.py", BROKEN, "unknown"))
    assert other not in editor.published


def test_a_text_that_is_typed_sign_by_sign_is_looked_at_when_it_stands(
    editor: Editor, tmp_path: Path
) -> None:
    uri = editor.open(tmp_path / "a.py", "")
    for end in range(len(BROKEN)):
        editor.type(uri, BROKEN[: end + 1])
    assert codes(editor.shown(uri)) == [("GF101", 5)]


def test_a_huge_text_is_looked_at(editor: Editor, tmp_path: Path) -> None:
    above = "".join(f"number_{i} = {i}\n" for i in range(20_000))
    uri = editor.open(tmp_path / "a.py", above + BROKEN)
    assert codes(editor.shown(uri)) == [("GF101", 20_005)]
    editor.type(uri, "#\n" + above + BROKEN + "(")
    assert codes(editor.shown(uri)) == [("GF101", 20_006)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("import torch\nprint 'a'\n", ":2: parse: Python 2", id="Python 2"),
        pytest.param("import torch\nx = '\0'\n", ":2: decode: contains a NUL byte", id="a NUL byte"),
        pytest.param("import torch\nx = " + "(" * 10_000, "parse: ", id="10,000 brackets"),
        pytest.param("import torch\nx = '\ud800'\n", ":2: decode: not utf-8", id="half a character"),
    ],
)
def test_what_cannot_be_read_is_a_line_in_the_log(
    text: str, reason: str, editor: Editor, tmp_path: Path
) -> None:
    uri = editor.open(tmp_path / "a.py", text)
    editor.until(lambda: editor.log)
    (told,) = editor.log
    assert reason in told
    editor.type(uri, BROKEN)
    assert codes(editor.shown(uri)) == [("GF101", 5)]


def test_the_death_of_what_plays_texts_is_a_line_in_the_log(editor: Editor, tmp_path: Path) -> None:
    uri = editor.open(tmp_path / "a.py", BROKEN)
    assert len(editor.shown(uri)) == 1
    players = stopped(editor)
    editor.type(uri, MENDED)
    for player in players:
        os.kill(player, signal.SIGKILL)
    editor.until(lambda: editor.log or editor.published[uri].version == 2)
    editor.type(uri, "#\n" + BROKEN)
    assert codes(editor.shown(uri)) == [("GF101", 6)]
    assert set(players).isdisjoint(editor.processes())


def test_a_text_that_takes_too_long_is_given_up_and_the_next_is_looked_at(tmp_path: Path) -> None:
    editor = Editor(tmp_path, MODERN, "--time-limit", "2")
    uri = editor.open(tmp_path / "a.py", MENDED)
    editor.shown(uri)
    (player,) = stopped(editor)
    editor.type(uri, "#\n" + MENDED)
    editor.until(lambda: editor.log)
    assert editor.log == [f"{tmp_path}/a.py is not looked at: it takes longer than 2 seconds"]
    editor.type(uri, "#\n" + BROKEN)
    assert codes(editor.shown(uri)) == [("GF101", 6)]
    assert player not in editor.processes()
    assert editor.leave() == 0


def test_a_look_at_a_text_that_has_changed_since_is_ended(tmp_path: Path) -> None:
    editor = Editor(tmp_path)
    uri = editor.open(tmp_path / "a.py", MENDED)
    editor.shown(uri)
    (player,) = stopped(editor)
    editor.type(uri, "#\n" + MENDED)
    editor.run(_moment())
    editor.type(uri, "#\n" + BROKEN)
    assert codes(editor.shown(uri)) == [("GF101", 6)]
    assert player not in editor.processes()
    assert editor.log == []
    assert editor.leave() == 0


def test_what_would_mend_a_text_never_keeps_what_is_found_waiting(tmp_path: Path) -> None:
    editor = Editor(tmp_path)
    uri = editor.open(tmp_path / "a.py", BROKEN)
    editor.shown(uri)
    (finding,) = editor.processes()
    assert len(editor.offered(uri, at(5))) == 3
    (mending,) = {*editor.processes()} - {finding}
    os.kill(mending, signal.SIGSTOP)
    for number in range(3):
        editor.type(uri, "#\n" * number + BROKEN)
        assert codes(editor.shown(uri)) == [("GF101", 5 + number)]
        editor.run(_moment())
    assert len(editor.offered(uri, at(7))) == 3
    assert finding in editor.processes()
    assert mending not in editor.processes()
    assert editor.leave() == 0


def stopped(editor: Editor) -> list[int]:
    """The processes that play texts, which for now do nothing."""
    players = editor.processes()
    for player in players:
        os.kill(player, signal.SIGSTOP)
    return players


async def _moment() -> None:
    await asyncio.sleep(0.7)


def test_an_editor_that_can_do_little_is_served_too(tmp_path: Path) -> None:
    """Without related information the evidence is in the message; without versions edits have none."""
    editor = Editor(tmp_path, PLAIN, "--stdio")
    uri = editor.open(tmp_path / "a.py", BROKEN)
    (shown,) = editor.shown(uri)
    assert shown.message.splitlines()[1:] == [
        "line 4: saved here",
        "line 5: overwritten here",
        "line 6: backward runs here",
    ]
    assert shown.related_information is None
    fix = editor.offered(uri, at(5))[0]
    assert fix.edit is not None and fix.edit.changes is not None
    assert applied(BROKEN, fix.edit.changes[uri]) == MENDED
    assert editor.watched == []
    assert editor.leave() == 0


@pytest.mark.parametrize(
    ("units", "column"),
    [
        pytest.param(types.PositionEncodingKind.Utf8, 4, id="of UTF-8"),
        pytest.param(types.PositionEncodingKind.Utf32, 1, id="of UTF-32"),
    ],
)
def test_places_are_counted_in_the_units_that_the_editor_prefers(
    units: types.PositionEncodingKind, column: int, tmp_path: Path
) -> None:
    general = types.GeneralClientCapabilities(position_encodings=[units, types.PositionEncodingKind.Utf16])
    editor = Editor(tmp_path, types.ClientCapabilities(general=general))
    assert editor.capabilities.position_encoding == units
    uri = editor.open(tmp_path / "a.py", BROKEN.replace("y += 1", "'😀'; y += 1"))
    (shown,) = editor.shown(uri)
    assert shown.range.start == types.Position(4, column + 4)
    assert editor.leave() == 0


def test_who_leaves_leaves_no_process_behind(tmp_path: Path) -> None:
    """Also without a word, while a text is played."""
    editor = Editor(tmp_path)
    uri = editor.open(tmp_path / "a.py", BROKEN)
    editor.shown(uri)
    server = editor.client._server
    assert server is not None and server.stdin is not None
    players = editor.processes()
    server.stdin.close()
    editor.run(editor.gone())
    editor.loop.close()
    editor_left = [each for each in players if Path(f"/proc/{each}").exists()]
    assert players
    assert editor_left == []
