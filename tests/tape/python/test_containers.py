"""What is in a list or dict after something was done to it, asked by what a program makes of it."""

from __future__ import annotations

import pytest
from short import listed

from gradfix.tape.domain.trail import Trail
from gradfix.tape.domain.values import NONE, Const, Map, Seq, Slice, Unknown, Value
from gradfix.tape.domain.why import fact
from gradfix.tape.python.containers import in_doubt, mapping_method, may_lose, store_in_sequence

CHOSEN = """
{made}
{deed}
h = nn.Linear(4, 4)(torch.randn(2, 4))
h = torch.sigmoid(h) if {asked} == "sig" else h * 1.0
h += 1
h.sum().backward()
"""
"""Fails exactly where what is asked is "sig"."""
LIST = "xs = ['lin', 'sig', 'lin', 'sig']"
LISTS = [
    ("an item is appended", "xs.append('sig')", "xs[-1]", True),
    ("another is appended", "xs.append('lin')", "xs[-1]", False),
    ("a list is put behind it", "xs.extend(['lin'])", "xs[-1]", False),
    ("an item is put in front", "xs.insert(0, 'sig')", "xs[0]", True),
    ("the first is taken out", "xs.pop(0)", "xs[0]", True),
    ("the last is taken out", "xs.pop()", "xs[-1]", False),
    ("it is turned round", "xs.reverse()", "xs[0]", True),
    ("it is turned round, and its end is asked", "xs.reverse()", "xs[-1]", False),
    ("its slice is assigned", "xs[:] = ['sig']", "xs[0]", True),
    ("its slice is assigned otherwise", "xs[:] = ['lin']", "xs[0]", False),
    ("an item is assigned", "xs[0] = 'sig'", "xs[0]", True),
    ("another item is assigned", "xs[1] = 'lin'", "xs[1]", False),
    ("a copy is emptied", "xs.copy().clear()", "xs[1]", True),
    ("what it holds is counted", "xs.count('sig'), xs.index('sig')", "xs[1]", True),
    ("it is cleared and filled", "xs.clear(); xs.append('sig')", "xs[0]", True),
    ("it is cleared and filled otherwise", "xs.clear(); xs.append('lin')", "xs[0]", False),
]
DICT = "d = {'a': 'lin', 'b': 'sig'}"
DICTS = [
    ("an entry is popped that isn't asked", "d.pop('a')", "d['b']", True),
    ("an entry is popped", "d.pop('b')", "d.get('b', 'lin')", False),
    ("it is updated by name", "d.update(b='lin')", "d['b']", False),
    ("it is updated with another name", "d.update(c='lin')", "d['b']", True),
    ("it is updated with a dict", "d.update({'a': 'sig'})", "d['a']", True),
    ("it is cleared", "d.clear()", "d.get('b', 'lin')", False),
    ("its copy is cleared", "d.copy().clear()", "d['b']", True),
    ("a default is set that is there", "d.setdefault('b', 'lin')", "d['b']", True),
    ("a default is set that isn't there", "d.setdefault('c', 'sig')", "d['c']", True),
    ("a popped entry is used", "found = d.pop('b')", "found", True),
]
KEPT = """
lin = nn.Linear(4, 4)
cut, whole = lin(torch.randn(2, 4)).detach(), lin(torch.randn(2, 4))
number = int(torch.randint(2, ()))
{made}
{deed}
{asked}.sum().backward()
"""
PAIR = "xs = [cut, whole]", "xs[0]"
ENTRIES = "d = {'a': whole, 'b': cut}", "d.get('b', whole)"
UNTOLD = [
    ("a list is put in order", PAIR, "xs.sort(key=float.fromhex)"),
    ("an item is written, nobody knows which", PAIR, "xs[number] = whole"),
    ("an item is taken out, nobody knows which", PAIR, "xs.pop(number)"),
    ("what isn't known is taken out", PAIR, "xs.remove(xs[number])"),
    ("a slice is taken out", PAIR, "xs[:number] = []"),
    ("a dict is updated with pairs", ENTRIES, "d.update([('b', whole)])"),
    ("any entry is taken out", ENTRIES, "d.popitem()"),
    ("an entry is written, nobody knows which", ENTRIES, "d['ab'[number]] = whole"),
    ("an entry is taken out, nobody knows which", ENTRIES, "d.pop('ab'[number])"),
]


@pytest.mark.parametrize(
    ("made", "deed", "asked", "found"),
    [
        *(pytest.param(LIST, *row[1:], id=row[0]) for row in LISTS),
        *(pytest.param(DICT, *row[1:], id=row[0]) for row in DICTS),
    ],
)
def test_what_is_done_to_a_container_is_known(made: str, deed: str, asked: str, found: bool) -> None:
    python: dict[str, object] = {}
    exec(f"{made}\n{deed}\nanswer = {asked}", python)
    assert (python["answer"] == "sig") is found
    assert bool(listed(CHOSEN.format(made=made, deed=deed, asked=asked))) is found


@pytest.mark.parametrize(("kept", "deed"), [pytest.param(kept, deed, id=name) for name, kept, deed in UNTOLD])
def test_nothing_is_listed_where_something_else_may_be_there(kept: tuple[str, str], deed: str) -> None:
    made, asked = kept
    assert listed(KEPT.format(made=made, deed="", asked=asked)) == {"detached_loss_path"}
    assert listed(KEPT.format(made=made, deed=deed, asked=asked)) == set()


def test_what_may_be_gone_is_in_doubt_once() -> None:
    trail, items = Trail(), [Const(1), Unknown(fact("a number"))]
    owner = Seq("list", [*items])
    may_lose(trail, owner)
    assert owner.open
    doubts = owner.items
    assert [one.holds for one in doubts if isinstance(one, Unknown)] == [(one,) for one in items]
    may_lose(trail, owner)
    assert owner.items == doubts


def test_objects_are_not_in_doubt() -> None:
    class Thing(Value):
        __slots__ = ()

    thing = Thing()
    assert in_doubt([thing]) == [thing]


def test_what_a_dict_may_lose_is_journalled() -> None:
    trail, entry = Trail(), Const("sig")
    owner = Map({"a": entry})
    trail.open(1 << 62)
    may_lose(trail, owner)
    assert (owner.open, owner.items["a"] is entry) == (True, False)
    trail.undo()
    assert (owner.open, owner.items) == (False, {"a": entry})


def test_a_slice_that_is_assigned_what_is_not_known_leaves_the_list_open() -> None:
    trail, owner = Trail(), Seq("list", [Const(1)])
    store_in_sequence(trail, owner, Slice(NONE, NONE, NONE), Unknown(fact("a list")))
    assert owner.open and len(owner.items) == 1 and isinstance(owner.items[0], Unknown)


def test_a_popped_default_is_what_was_given() -> None:
    default = Const(3)
    assert mapping_method(Trail(), Map({}), "pop", [Const("a"), default], {}) is default
    open_ = mapping_method(Trail(), Map({}, True), "pop", [Const("a"), default], {})
    assert isinstance(open_, Unknown) and default in open_.holds
