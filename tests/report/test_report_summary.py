"""The closing words: what was found, what failed, what can be done, in the right grammar."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from report_runs import BLOCK, broken, by_hand, outcome, overwritten

from gradfix.defects import Span
from gradfix.outcome import Mode, Outcome, Run, UnusedSuppression, View
from gradfix.report.show import load, show
from gradfix.rule import Finding, Safety
from gradfix.tape.analysis import Silence

UNSAFE = replace(overwritten(), safety=Safety.UNSAFE, impact="trains wrong")
LEFT = by_hand(replace(overwritten(), impact="style"), "clone it")


def said(*outcomes: Outcome, mode: Mode = "list", verbose: bool = False) -> str:
    """What the summary prints for these files."""
    stream = io.StringIO()
    load("summary").render(Run(outcomes, mode), stream, View(verbose=verbose))
    return stream.getvalue()


def test_two_streams_keep_the_report_apart_from_the_counts() -> None:
    out, err = io.StringIO(), io.StringIO()
    show(Run((outcome([overwritten()]), broken())), View(output_format="concise"), out, err)
    assert out.getvalue().startswith("models/resnet.py:7:9: GF101")
    assert out.getvalue().count("\n") == 1
    assert err.getvalue() == (
        "bad.py:3: failed (parse): invalid syntax\n"
        "1 finding in 2 files (1 failed): 1 crashes. --diff shows the fix, --apply writes it.\n"
    )


@pytest.mark.parametrize(
    ("findings", "words"),
    [
        ([overwritten()], "1 crashes. --diff shows the fix, --apply writes it."),
        ([overwritten()] * 2, "2 crash. --diff shows both fixes, --apply writes them."),
        ([overwritten()] * 3, "3 crash. --diff shows all fixes, --apply writes them."),
        ([overwritten(), LEFT], "1 crashes, 1 is a matter of style. --diff shows 1 fix, --apply writes it."),
        (
            [overwritten(), overwritten(), UNSAFE],
            "2 crash, 1 trains wrong. --diff shows 2 fixes, --apply writes them; 1 more with --unsafe-fixes.",
        ),
        ([UNSAFE, UNSAFE], "2 train wrong. --unsafe-fixes --diff shows 2 rewrites."),
        ([LEFT], "1 is a matter of style."),
    ],
)
def test_the_counts_end_with_what_can_be_done(findings: list[Finding], words: str) -> None:
    count = f"{len(findings)} finding{'s' * (len(findings) > 1)}"
    assert said(outcome(findings)) == f"{count} in 1 file: {words}\n"


def test_fixes_are_counted_and_not_the_findings_that_they_take_along() -> None:
    gone = replace(outcome([overwritten(), LEFT]), remaining=())
    assert said(gone).endswith(
        ": 1 crashes, 1 is a matter of style. --diff shows 1 fix, --apply writes it.\n"
    )


@pytest.mark.parametrize("mode", ["diff", "apply"])
def test_nothing_rewritten_says_nothing(mode: Mode) -> None:
    assert said(outcome([]), mode=mode) == ""


def test_nothing_found_is_said() -> None:
    assert said(outcome([]), mode="list") == "0 findings in 1 file.\n"


def test_gated_files_are_counted_apart() -> None:
    shown = said(outcome([overwritten()]), Outcome("a.py", gated=True), Outcome("b.py", gated=True))
    assert shown.startswith("1 finding in 3 files (2 without autograd): ")


def test_a_diff_is_counted_from_itself() -> None:
    after = BLOCK.replace("out += shortcut", "out = out + shortcut").encode()
    rewritten = replace(outcome([overwritten()]), after=after, remaining=())
    assert said(rewritten, mode="diff") == "1 file, 1 hunk, 1 line added, 1 removed. --apply writes it.\n"


def test_a_diff_names_what_it_leaves_out() -> None:
    assert said(outcome([LEFT]), mode="diff") == (
        "Nothing to rewrite. 1 finding without a rewrite here: gradfix without --diff lists what to do.\n"
    )


def test_a_diff_says_how_to_see_what_is_unsafe() -> None:
    after = BLOCK.replace("out += shortcut", "out = out + shortcut").encode()
    both = replace(outcome([overwritten()]), after=after, remaining=(UNSAFE,))
    assert (
        said(outcome([UNSAFE]), mode="diff") == "Nothing to rewrite. --unsafe-fixes --diff shows 1 rewrite.\n"
    )
    assert said(both, mode="diff").endswith("--unsafe-fixes --diff shows 1 rewrite more.\n")


def test_apply_counts_what_was_written_and_what_is_left() -> None:
    after = BLOCK.replace("out += shortcut", "out = out + shortcut").encode()
    written = replace(fixed(overwritten()), after=after, remaining=(UNSAFE,))
    assert said(written, mode="apply").splitlines()[1:] == [
        "1 finding fixed in 1 file, 1 left: 1 trains wrong. --unsafe-fixes rewrites 1."
    ]
    assert said(replace(written, remaining=()), mode="apply").endswith("\n1 finding fixed in 1 file.\n")


def fixed(*findings: Finding, lines: tuple[int, ...] = (7,)) -> Outcome:
    """A file on disk in which all of these are mended."""
    return replace(outcome(findings), after=b"", remaining=(), applied=findings, fixed_at=lines, written=True)


def test_apply_lists_what_it_fixed_by_the_lines_of_the_new_text() -> None:
    assert said(fixed(overwritten(), UNSAFE, lines=(12, 9)), mode="apply") == (
        "models/resnet.py:9: fixed (unsafe) GF101 inplace_overwrites_saved: out = out + shortcut\n"
        "models/resnet.py:12: fixed GF101 inplace_overwrites_saved: out = out + shortcut\n"
        "2 findings fixed in 1 file.\n"
    )


@pytest.mark.parametrize("mode", ["list", "diff", "add-ignore"])
def test_only_what_was_asked_to_be_fixed_is_listed_as_fixed(mode: Mode) -> None:
    assert ": fixed " not in said(fixed(overwritten()), mode=mode)


def test_what_was_not_written_is_not_counted_as_fixed() -> None:
    planned = replace(outcome([overwritten()]), after=b"", applied=(overwritten(),))
    assert said(planned, mode="apply").startswith("0 findings fixed in 0 files, 1 left: 1 crashes.")


def test_add_ignore_counts_what_it_silenced() -> None:
    silenced = replace(outcome([overwritten(), LEFT]), after=b"", applied=(LEFT,), written=True)
    assert said(silenced, mode="add-ignore") == "1 finding silenced in 1 file.\n"


def test_verbose_tells_where_gradfix_kept_silent_and_why() -> None:
    quiet = replace(
        outcome([]),
        silences=(Silence(Span(4, 0, 4, 1), "unknown call"),),
        unused_suppressions=(UnusedSuppression(9, "gradfix: ignore[GF101]"),),
    )
    assert said(quiet, verbose=True) == (
        "models/resnet.py:4: silent: unknown call\n"
        "models/resnet.py:9: silences nothing: gradfix: ignore[GF101]\n"
        "0 findings in 1 file.\n"
    )
    assert said(quiet) == "0 findings in 1 file.\n"
