"""What a project gives for the names of its options, wherever it says so."""

from __future__ import annotations

import ast

import pytest

from gradfix.driver.given import examples
from gradfix.driver.options import options
from gradfix.driver.values import Items, Number

PROGRAM = """\
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--use-mask", action="store_true")
parser.add_argument("--device", default="cuda:0")


class Options:
    layers: int = 3

    def __init__(self):
        self.hidden = 1024


class Net:
    depth = 7

    def forward(self):
        return self.depth


config = {"sizes": [1, 2], "inner": {"heads": 4}}
cfg.drop = 0.5
"""


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lr", Number(0.1)),
        ("use_mask", Number(False)),
        ("device", Number("cpu")),
        ("layers", Number(3)),
        ("hidden", Number(256)),
        ("sizes", Items((Number(1), Number(2)))),
        ("heads", Number(4)),
        ("drop", Number(0.5)),
    ],
)
def test_options_are_read_where_a_program_gives_them(name: str, value: object) -> None:
    assert options([ast.parse(PROGRAM)], [])[name] == value


def test_a_class_that_does_something_is_no_class_of_options() -> None:
    assert "depth" not in options([ast.parse(PROGRAM)], [])


def test_a_file_of_options_comes_after_the_program() -> None:
    found = options(
        [ast.parse("cfg.width = 8")], ["width: 16\nmodel:\n  rate: 0.5  # so much\n  deep: true\n"]
    )
    assert (found["width"], found["rate"], found["deep"]) == (Number(8), Number(0.5), Number(True))


def test_examples_in_doc_strings_are_calls() -> None:
    tree = ast.parse(
        'class Net:\n    """A net.\n\n    >>> net = Net(3,\n    ...     4)\n    >>> net(2)\n    5\n    """\n'
    )
    assert [ast.unparse(one) for one in examples(tree)] == ["net = Net(3, 4)\nnet(2)"]
