"""The pictures: what the tape has seen, line by line, each value above what it goes into."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from docs.drawn import lanes, legend, svg
from docs.pictures import LONGEST, Row, before_and_after
from docs.shown import Example
from gradfix.registry import codemods

each_rule = pytest.mark.parametrize("rule", list(codemods()))


def pictures(rule: str) -> tuple[list[Row], list[Row]]:
    example = Example(rule)
    return before_and_after(example.text, example.outcome.after, example.finding)


def told(rows: list[Row]) -> list[tuple[str, str, list[str]]]:
    return [(row.role, row.code, row.notes) for row in rows]


def test_an_overwritten_value_is_shown_where_it_was_saved_and_where_it_was_written() -> None:
    before, after = pictures("inplace_overwrites_saved")
    assert told(before)[2:] == [
        ("operation", "out = F.relu(x)", ["saved here"]),
        ("operation", "out += skip", ["overwritten here"]),
        ("operation", "out.pow(2)", []),
        ("operation", "loss = out.pow(2).mean()", []),
        ("backward", "loss.backward()", ["backward runs here"]),
    ]
    assert before[3].above == [(2, "recorded"), (1, "plain")]
    assert told(after)[3] == ("operation", "out = out + skip", ["rewritten"])
    assert (after[0].role, after[0].notes, after[0].good) == ("leaf", ["its gradient arrives"], True)


def test_a_cut_ends_the_graph_and_what_is_above_it_gets_nothing() -> None:
    before, after = pictures("detached_loss_path")
    (cut,) = [row for row in before if row.role == "cut"]
    assert [kind for _, kind in cut.above] == ["cut"]
    assert (before[0].notes, before[0].bad) == (["no gradient arrives"], True)
    assert [row.role for row in before[before.index(cut) + 1 :]] == ["plain", "backward"]
    assert not any(kind == "cut" for row in after for _, kind in row.above)
    assert after[0].good


def test_what_clears_and_uses_gradients_stands_between_the_backwards() -> None:
    before, after = pictures("missing_zero_grad")
    assert [row.role for row in before[-2:]] == ["backward", "step"]
    assert [row.role for row in after[-3:]] == ["clear", "backward", "step"]
    assert after[-3].good and not after[-1].good


def test_two_backwards_share_the_graph_above_them() -> None:
    before, after = pictures("backward_twice")
    for rows in (before, after):
        first, second = [row for row in rows if row.role == "backward"]
        assert first.above == second.above
    assert [row.notes for row in before[-2:]] == [["frees it"], ["needs it again"]]


def test_several_layers_under_one_call_are_told_apart() -> None:
    before, _ = pictures("inplace_module")
    assert [(row.code, row.notes) for row in before if row.bad][1:3] == [
        ("tanh", ["saved here"]),
        ("relu", ["overwritten here"]),
    ]


@each_rule
def test_a_finding_is_seen_before_and_a_rewrite_after(rule: str) -> None:
    before, after = pictures(rule)
    assert any(row.bad for row in before)
    assert not any(row.bad for row in after)
    assert bool(after) == bool(Example(rule).diff)
    assert not after or any(row.good for row in after)


@each_rule
def test_values_go_down_and_branches_keep_apart(rule: str) -> None:
    for rows in filter(None, pictures(rule)):
        assert all(at < i for i, row in enumerate(rows) for at, _ in row.above)
        assert all(len(row.code) <= LONGEST and "\n" not in row.code for row in rows)
        where = lanes(rows)
        for i, row in enumerate(rows):
            for at, _ in row.above:
                assert all(where[between] != where[at] for between in range(at + 1, i))


@each_rule
def test_a_picture_is_well_formed_and_says_each_line(rule: str) -> None:
    for rows in filter(None, pictures(rule)):
        root = ElementTree.fromstring(svg(rows, "<title> & more"))
        text = "".join(root.itertext())
        assert all(row.code in text for row in rows)
        width, height = map(float, root.attrib["viewBox"].split()[2:])
        assert width <= 460
        assert height >= 40 * len(rows) - 10


def test_the_legend_has_a_sign_for_each_kind_of_row() -> None:
    shown = ElementTree.fromstring(legend())
    roles = {each.attrib["class"] for each in shown.iter("g")} - {"sign"}
    assert {row.role for rule in codemods() for rows in pictures(rule) for row in rows} <= roles | {
        "plain",
        "clear",
    }
