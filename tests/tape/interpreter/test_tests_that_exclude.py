"""Two tests that never hold together: nothing is said of what would be wrong if they did."""

from __future__ import annotations

import pytest
from short import analysis, listed

PLAIN = """
import os, re
lin = nn.Linear(4, 4)
def block(x, mode, n, m, cfg, flag):
    h = lin(x)
    if {first}:
        h = torch.softmax(h, -1)
    if {second}:
        h += 1.0
    h.sum().backward()
"""
FLAG = PLAIN.replace("    h = lin(x)", "    held = {second}\n    h = lin(x)").replace(
    "if {second}:", "if held:"
)
MODULE = """
import os, re
class Block(nn.Module):
    def __init__(self, mode, n, m, cfg, flag):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.mode, self.n, self.m, self.cfg, self.flag = mode, n, m, cfg, flag
    def forward(self, x):
        mode, n, m, cfg, flag = self.mode, self.n, self.m, self.cfg, self.flag
        h = self.lin(x)
        if {first}:
            h = torch.softmax(h, -1)
        if {second}:
            h += 1.0
        return h
"""
APART = [
    ('mode in ("a","c")', 'mode == "b"'),
    ('mode in ("a","c")', 'mode in ("b","d")'),
    ('mode.startswith("a")', 'mode == "b"'),
    ("n == 1", "n > 1"),
    ("n > 5", "n < 5"),
    ("n > 5", "n == 3"),
    ("n % 2 == 0", "n % 2 == 1"),
    ("n", "n == 0"),
    ("n == 0", "n"),
    ("x.dim() == 2", "x.dim() == 3"),
    ("x.dim() == 2", "x.dim() > 2"),
    ("x.size(1) == 1", "x.size(1) == 3"),
    ("x.dtype == torch.float16", "x.dtype == torch.float32"),
    ('cfg.get("mode") == "a"', 'cfg.get("mode") == "b"'),
    ("flag", "flag is None"),
    ("flag", "flag == False"),
    ("flag or n > 1", "not flag and n <= 1"),
    ("callable(mode)", 'mode == "b"'),
    ("isinstance(mode, str)", "mode is None"),
    ("isinstance(cfg, dict)", "isinstance(cfg, list)"),
    ("any((mode, n))", "not (mode or n)"),
    ("any(m is not None for m in cfg)", "all(m is None for m in cfg)"),
    ('"r" in cfg', 'cfg.get("r") is None'),
    ('"x" in mode', 'mode == "y"'),
    ("n > 0", "not n"),
    ("0 < n < 4", "n >= 4"),
    ("n > m", "m >= n"),
    ("max(n, m) > 1", "max(n, m) == 1"),
    ("type(mode) is str", "type(mode) is int"),
    ("n + m == 0", "n + m > 0"),
    ("n is m", "n is not m"),
    ('re.match("val|test", mode)', 'mode == "train"'),
    ('mode.lower() == "a"', 'mode.lower() == "b"'),
    ("len(cfg) > 1", "len(cfg) == 1"),
    ("len(cfg) == 0", "cfg"),
    ("n // 2 == 0", "n // 2 > 0"),
    ("isinstance(cfg, (list, tuple))", "isinstance(cfg, dict)"),
    ('mode.endswith("a")', 'mode == "b"'),
    ("x.ndim == 2", "x.ndim != 2"),
    ("flag is True", "not flag"),
    ('mode == "a"', 'mode != "a"'),
    ("n == m", "n != m"),
    ("min(n, m) < 0", "min(n, m) >= 0"),
    ('str(mode) == "a"', 'str(mode) == "b"'),
    ("x.shape[-1] % 2 == 0", "x.shape[-1] % 2 != 0"),
    ("bool(cfg)", "not cfg"),
    ("len(mode) > 3", 'mode == "ab"'),
    ("sum(cfg) > 0", "sum(cfg) == 0"),
    ("n & 1", "not n & 1"),
    ("os.path.exists(mode)", "not os.path.exists(mode)"),
    ("cfg.n == 1", "cfg.n > 1"),
    ('cfg["n"] == 1', 'cfg["n"] > 1'),
    ('getattr(cfg, "n") == 1', "cfg.n == 2"),
    ("n in {1, 2}", "n == 3"),
    ("n in range(3)", "n == 3"),
    ("n in range(3)", "n > 5"),
    ("n == 1", "not n == 1"),
    ("n is None", "isinstance(n, int)"),
    ("n == 1.0", "n == 2"),
    ("abs(n) > 3", "n == 0"),
    ('mode == "a" or mode == "b"', 'mode == "c"'),
    ('not (mode == "a" or mode == "b")', 'mode == "a"'),
    ("n and m", "not n"),
    ("n or m", "not n and not m"),
    ('cfg.get("mode") == "a"', 'cfg["mode"] == "b"'),
    ('cfg.get("mode", False)', 'not cfg["mode"]'),
    ('"mode" in cfg', 'cfg.get("mode", 0) == 1 and "mode" not in cfg'),
    ('type(m).__name__ == "A"', 'type(m).__name__ == "B"'),
    ('type(m).__name__ == "A"', 'm.__class__.__name__ == "B"'),
    ('mode.split("_")[0] == "a"', 'mode.split("_")[0] == "b"'),
    ('mode.split("_")[0] == "a"', 'mode.startswith("b")'),
    ("x.shape[1] == 1", "x.size(1) == 3"),
    ("x.shape[0] == 1", "len(x) > 1"),
    ("x.numel() == 1", "x.shape[0] > 1"),
    ("x.sum() == 0", "x.sum() > 0"),
    ("m.stride == 2", "m.stride[0] == 1"),
    ('getattr(m, "a", None) is not None', 'not hasattr(m, "a")'),
    ('f"{n}" == "1"', "n == 2"),
    ("issubclass(m, A)", "issubclass(m, B)"),
    ('os.environ.get("A") == "1"', 'os.environ["A"] == "0"'),
]
TOGETHER = [
    ("n == 1", "n >= 1"),
    ("n > 1", "n == 2"),
    ("n > 5", "n < 9"),
    ("n % 2 == 0", "n % 4 == 0"),
    ("n", "n == 3"),
    ("not n", "n == 0"),
    ("flag is None", "not flag"),
    ('mode in ("a", "c")', 'mode == "a"'),
    ('mode in ("a", "b")', 'mode in ("b", "c")'),
    ('mode.startswith("a")', 'mode != "b"'),
    ('mode.lower() == "a"', 'mode == "A"'),
    ('cfg.get("mode") == "a"', 'cfg.get("mode") != "b"'),
    ("len(cfg) == 0", "not cfg"),
    ("isinstance(n, int)", "n == 5"),
    ("isinstance(mode, str)", 'mode == "b"'),
    ("n > m", "m < n"),
    ("flag", "not n"),
    ("x.dim() == 2", 'mode == "a"'),
    ('cfg["mode"] == "a"', 'cfg["kind"] == "b"'),
    ('cfg.get("mode") == "a"', 'cfg.get("kind") == "b"'),
    ("m.stride == 2", "m.kernel == 1"),
    ('hasattr(m, "a")', "m.a == 2"),
    ('"mode" in cfg', 'cfg["mode"] == "b"'),
    ('"mode" not in cfg', 'cfg["kind"] == "b"'),
]
each_shape = pytest.mark.parametrize(
    "program",
    [
        pytest.param(PLAIN, id="of a function's arguments"),
        pytest.param(FLAG, id="kept in a flag"),
        pytest.param(MODULE, id="of what a module holds"),
    ],
)


@each_shape
@pytest.mark.parametrize(("first", "second"), [pytest.param(*row, id=" and ".join(row)) for row in APART])
def test_nothing_is_listed_under_tests_that_never_hold_together(
    program: str, first: str, second: str
) -> None:
    assert listed(program.format(first=first, second=second)) == set()


@each_shape
@pytest.mark.parametrize(("first", "second"), [pytest.param(*row, id=" and ".join(row)) for row in TOGETHER])
def test_what_is_wrong_under_tests_that_may_hold_together_is_listed(
    program: str, first: str, second: str
) -> None:
    assert listed(program.format(first=first, second=second)) == {"inplace_overwrites_saved"}


def test_two_sizes_of_a_tensor_may_be_anything() -> None:
    found = listed(PLAIN.format(first="x.shape[0] == 1", second="x.shape[1] == 3"))
    assert found == {"inplace_overwrites_saved"}


REFUSING = MODULE.replace("        self.lin", "        {refusal}\n        self.lin", 1)


@pytest.mark.parametrize(
    "refusal",
    [
        "if flag and n: raise ValueError('one of them')",
        "if flag and n: raise NotImplementedError('one of them')",
        "assert not (flag and n)",
        "assert not flag or not n",
    ],
)
def test_what_is_refused_where_an_object_is_made_holds_in_its_methods(refusal: str) -> None:
    assert listed(REFUSING.format(refusal=refusal, first="flag", second="n")) == set()
    assert listed(REFUSING.format(refusal=refusal, first="flag", second="m")) == {"inplace_overwrites_saved"}


@pytest.mark.parametrize(
    "empty", ["x.size(0) == 0", "x.numel() < 1", "len(x) == 0", "not len(x)", "x.shape[0] <= 0"]
)
def test_nobody_learns_from_what_is_empty(empty: str) -> None:
    assert listed(PLAIN.format(first=empty, second="flag")) == set()


def test_what_has_something_in_it_may_be_learnt_from() -> None:
    assert listed(PLAIN.format(first="x.size(0) > 0", second="flag")) == {"inplace_overwrites_saved"}


@pytest.mark.parametrize("asked", ["onnx.is_in_onnx_export", "jit.is_scripting", "jit.is_tracing"])
def test_what_is_run_line_by_line_is_not_exported(asked: str) -> None:
    assert listed(PLAIN.format(first="flag", second=f"torch.{asked}()")) == set()
    assert listed(PLAIN.format(first="flag", second=f"not torch.{asked}()")) == {"inplace_overwrites_saved"}


def test_what_may_be_compiled_in_the_same_file_may_say_so() -> None:
    body = PLAIN.format(first="flag", second="torch.compiler.is_compiling()")
    assert listed(body + "\nquick = torch.compile(nn.Linear(2, 2))\n") == {"inplace_overwrites_saved"}


SEVEN = """
import argparse
parser = argparse.ArgumentParser()
for name in "abcdefg":
    parser.add_argument("--" + name, action="store_true")
args = parser.parse_args()
assert args.a + args.b + args.c + args.d + args.e + args.f + args.g == 1
h = nn.Linear(3, 3)(torch.randn(2, 3)).sigmoid()
if args.a:
    h.mul_(2)
if args.b:
    h.sum().backward()
"""


def test_where_too_much_would_have_to_be_tried_nothing_is_said() -> None:
    assert listed(SEVEN) == set()


ASSERTED = """
class Loss(nn.Module):
    def __init__(self, size, boxes, classes):
        super().__init__()
        self.size, self.boxes, self.classes = size, boxes, classes
    def forward(self, made, wanted):
        deep = 5 * self.boxes + self.classes
        assert wanted.size() == torch.Size([made.size(0), self.size * self.size, deep])
        assert (made.size(1), made.size(2)) == (self.size * self.size, 5 * self.boxes + self.classes)
        near = made[wanted[:, :, 4] > 0].view(-1, made.size(-1))
        assert near.size(1) == 5 * self.boxes + self.classes
        far = made[wanted[:, :, 4] == 0].view(-1, made.size(-1))
        assert far.size(1) == 5 * self.boxes + self.classes
        assert far.size(0) == near.size(0) * self.boxes
        corners = torch.empty(made.size(), requires_grad=True)
        corners[:, :2] = made[:, :2] / float(self.size)
        return corners.sum()
"""


def test_what_is_said_of_a_text_is_the_same_each_time() -> None:
    found = [listed(ASSERTED) for _ in range(12)]
    assert found == [{"inplace_on_leaf"}] * 12


GIVEN = """
import argparse, os, sys
class Trainer:
    def __init__(self, net, inplace, train):
        self.net, self.inplace, self.train = net, inplace, train
    def step(self, x):
        h = self.net(x).sigmoid()
        if self.inplace:
            h.mul_(2)
        if self.train:
            h.sum().backward()
one = {one}
other = {other}
Trainer(nn.Linear(3, 3), one, other).step(torch.randn(2, 3))
"""


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("len(sys.argv) > 1", "not one", False),
        ("len(sys.argv) > 1", "len(sys.argv) <= 1", False),
        ("len(sys.argv) > 1", "len(sys.argv) > 2", True),
        ("'--fast' in sys.argv", "not one", False),
        ("'FAST' in os.environ", "'FAST' not in os.environ", False),
        ("sys.version_info >= (3, 8)", "sys.version_info < (3, 8)", False),
    ],
)
def test_what_a_program_is_given_is_the_same_wherever_it_is_asked(
    one: str, other: str, expected: bool
) -> None:
    found = listed(GIVEN.format(one=one, other=other))
    assert found == ({"inplace_overwrites_saved"} if expected else set())


ENDED = """
import argparse
def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--inplace", action="store_true")
    parser.add_argument("--train", action="store_true")
    args = parser.parse_args()
    if args.inplace and args.train:
        {refuse}
    return args
args = parse()
h = nn.Linear(3, 3)(torch.randn(2, 3)).sigmoid()
if args.inplace:
    h.mul_(2)
if args.train:
    h.sum().backward()
"""


@pytest.mark.parametrize(
    ("refuse", "expected"),
    [
        ("parser.error('one or the other')", set()),
        ("print('one or the other')", {"inplace_overwrites_saved"}),
    ],
)
def test_what_ends_the_program_in_a_function_is_refused(refuse: str, expected: set[str]) -> None:
    assert listed(ENDED.format(refuse=refuse)) == expected


STEPPED = """
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i, x in enumerate([torch.ones(4, 3), torch.zeros(4, 3), torch.ones(2, 3)]):
    if i % 2 == 0:
        opt.zero_grad()
    net(x).sum().backward()
    if i % 2 == 1 or i == {last}:
        opt.step()
"""


def test_a_step_that_a_test_decides_on_is_told() -> None:
    (found,) = [one for one in analysis(STEPPED.format(last="unknown()")).defects if one.impact != "style"]
    assert (found.kind, "unknown()" in found.condition) == ("missing_zero_grad", True)
    assert listed(STEPPED.format(last="2")) == set()


BUILT_IN_TURNS = """
parts = []
for i in range(2):
    parts.append(nn.Linear(3, 3))
    if {last}:
        continue
    parts.append(nn.ReLU())
h = nn.Sequential(*parts)(torch.randn(2, 3))
h += 0.1
h.sum().backward()
"""


def test_what_only_tests_of_other_turns_decide_has_no_words_and_is_a_suspect() -> None:
    assert listed(BUILT_IN_TURNS.format(last="i == 1")) == set()
    assert listed(BUILT_IN_TURNS.format(last="unknown(i) + 2 == 3")) == set()
    assert listed(BUILT_IN_TURNS.format(last="False")) == {"inplace_overwrites_saved"}


EITHER_WAY = """
import sys
CHOSEN = {{word.lstrip("-") for word in sys.argv[1:]}}
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.use = nn.Linear(3, 3), "track" in CHOSEN
    def forward(self, x):
        return torch.tanh(self.body(x)) if self.use else self.body(x)
loss = F.mse_loss(Net()(torch.randn(2, 3)), torch.ones(2, 3), reduction="none")
if {test}:
    loss = loss + 0.1
loss.backward()
"""


def test_what_holds_whichever_way_its_tests_come_out_needs_no_witness() -> None:
    assert listed(EITHER_WAY.format(test="'track' in CHOSEN")) == {"non_scalar_backward"}
    assert listed(EITHER_WAY.format(test="unknown()")) == {"non_scalar_backward"}


COUNTED = """
import sys
def train(fast, learns):
    h = nn.Linear(3, 3)(torch.randn(2, 3)).sigmoid()
    if fast:
        h.mul_(2)
    if learns:
        h.sum().backward()
train({fast}, {learns})
"""


@pytest.mark.parametrize(
    ("fast", "learns", "expected"),
    [
        ("len(sys.argv) > 1", "sys.argv[1] == 'train'", True),
        ("len(sys.argv) > 2", "int(sys.argv[2]) > 3", True),
        ("len(sys.argv) == 1", "'--train' in sys.argv", False),
        ("len(sys.argv) > 1", "len(sys.argv) < 2", False),
        ("len(sys.argv) > 1", "len(sys.argv) > 2", True),
    ],
)
def test_how_many_arguments_there_are_says_nothing_of_one_of_them(
    fast: str, learns: str, expected: bool
) -> None:
    found = listed(COUNTED.format(fast=fast, learns=learns))
    assert found == ({"inplace_overwrites_saved"} if expected else set())


JOINED = """
import sys
def train(h):
    {made}
    if rate > 0.1:
        h.mul_(2)
    if {other}:
        h.sum().backward()
train(nn.Linear(3, 3)(torch.randn(2, 3)).sigmoid())
"""
MADE = {
    "a handler": """try:
        rate = float(sys.argv[1])
    except (IndexError, ValueError):
        rate = 0.01""",
    "a conditional expression": "rate = float(sys.argv[1]) if len(sys.argv) > 1 else 0.01",
    "a branch": """rate = 0.01
    if len(sys.argv) > 1:
        rate = float(sys.argv[1])""",
}


@pytest.mark.parametrize("made", MADE.values(), ids=MADE.keys())
@pytest.mark.parametrize(
    ("other", "expected"), [("rate <= 0.1", False), ("not rate > 0.1", False), ("rate > 0.1", True)]
)
def test_one_of_several_values_is_the_same_in_each_test(made: str, other: str, expected: bool) -> None:
    found = listed(JOINED.format(made=made, other=other))
    assert found == ({"inplace_overwrites_saved"} if expected else set())


ON_ONE_MACHINE = """
import os, platform, sys
h = nn.Linear(3, 3)(torch.randn(2, 3)).sigmoid()
if os.name == "nt":
    h.mul_(2)
if {other}:
    h.sum().backward()
"""


@pytest.mark.parametrize("other", ["sys.platform != 'win32'", "sys.platform.startswith('linux')"])
def test_what_tells_of_one_machine_is_tied(other: str) -> None:
    assert listed(ON_ONE_MACHINE.format(other=other)) == set()
