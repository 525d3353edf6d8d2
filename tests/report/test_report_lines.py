"""The formats of one line for each finding: concise, GitHub's workflow commands, statistics."""

from __future__ import annotations

from dataclasses import replace

from report_runs import BLOCK, broken, by_hand, outcome, overwritten, rendered, suspected


def test_concise_is_one_line_for_each_finding() -> None:
    finding = replace(overwritten(), condition="self.residual")
    assert rendered("concise", outcome([finding])) == (
        "models/resnet.py:7:9: GF101 [crashes, certain, safe fix] "
        "`out += shortcut` overwrites what relu saved (when self.residual)\n"
    )


def test_a_certain_finding_is_an_error_annotation_with_its_columns() -> None:
    assert rendered("github", outcome([overwritten()])) == (
        "::error title=gradfix GF101 (crashes),file=models/resnet.py,line=7,endLine=7,col=9,endColumn=24"
        "::models/resnet.py:7:9: GF101 `out += shortcut` overwrites what relu saved"
        "%0Afix: out = out + shortcut\n"
    )


def test_a_likely_finding_is_a_warning_and_style_a_notice() -> None:
    likely = replace(overwritten(), certainty="likely")
    style = replace(overwritten(), impact="style")
    lines = rendered("github", outcome([likely, style])).splitlines()
    assert [line.split()[0] for line in lines] == ["::warning", "::notice"]


def test_what_means_something_to_github_is_escaped() -> None:
    finding = by_hand(replace(overwritten(), message="50% lost\nsee: a, b"), "")
    shown = rendered("github", outcome([finding], path="odd,name:100%.py"))
    assert "file=odd%2Cname%3A100%25.py," in shown
    assert shown.endswith("::odd,name:100%25.py:7:9: GF101 50%25 lost%0Asee: a, b\n")


def test_a_finding_of_several_lines_has_no_columns() -> None:
    source = BLOCK.replace("out += shortcut", "out.add_(\n            shortcut)")
    finding = overwritten(source, "out.add_(\n            shortcut)")
    shown = rendered("github", outcome([finding], source))
    assert "line=7,endLine=8::" in shown


def test_a_failed_file_is_annotated() -> None:
    assert rendered("github", broken()) == (
        "::error title=gradfix,file=bad.py,line=3::bad.py: parse failed: invalid syntax\n"
    )


def test_statistics_count_by_rule_the_most_frequent_first() -> None:
    rare = replace(by_hand(overwritten(), "?"), code="GF205", rule="non_differentiable_loss")
    assert rendered("statistics", outcome([rare, overwritten(), by_hand(overwritten(), "?")])) == (
        "2  GF101  inplace_overwrites_saved  1 safe, 1 by hand\n"
        "1  GF205  non_differentiable_loss   1 by hand\n"
    )


def test_statistics_of_nothing_are_nothing() -> None:
    assert rendered("statistics", outcome([])) == ""


def test_a_suspect_is_not_fixed_and_counted_apart() -> None:
    doubted = outcome([suspected(overwritten())])
    assert "[crashes, suspect, not fixed]" in rendered("concise", doubted)
    assert rendered("statistics", doubted).endswith("1 suspect\n")
