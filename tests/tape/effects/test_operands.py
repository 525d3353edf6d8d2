"""An operand that isn't known is in the account of the result: the result may lead wherever it leads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gradfix.source import Source, parse
from gradfix.tape.domain.effect import Effect
from gradfix.tape.domain.graph import upstream
from gradfix.tape.domain.values import Alt, Const, Seq, Unknown, Value
from gradfix.tape.domain.why import whys
from gradfix.tape.effects import table
from gradfix.tape.effects.frameworks import ROWS
from gradfix.tape.handlers import HANDLERS
from gradfix.tape.interpreter.interpreter import Interpreter
from gradfix.tape.interpreter.program import Program
from gradfix.tape.machine.reports import Findings
from gradfix.tape.torch.factories import MAKES

HEAD = """import einops, copy, torch
import torch.nn.functional as F
from torch import nn
import elsewhere
w = torch.ones(3, 3, requires_grad=True)
u = elsewhere.make()
"""
SURFACES = {
    "function": (table.function, "torch.{0}({1})"),
    "method": (table.method, "({2}).{0}({3})"),
    "functional": (table.functional, "F.{0}({1})"),
}
GIVEN = {"tensor": "w * 1", "tensors": "[w * 1, w * 2]", "number": "1", "other": "None"}
UNKNOWN = {"tensor": ("u",), "tensors": ("[w * 1, u]", "[u]", "(w * 1, (u,))", "[*u, w * 1]")}
PASS_NONE = {"to", "type_as", "bernoulli", "poisson"} | MAKES.keys()
"""What is made of nothing, in the image of an operand: no gradient goes through it."""
TOLERANCES = frozenset({"atol", "rtol", "rcond", "tol", "out"})


def globals_of(body: str) -> tuple[Interpreter, dict[str, Value]]:
    """What a script's names are bound to in the end."""
    source = parse("script.py", (HEAD + body).encode())
    assert isinstance(source, Source)
    program = Program(Findings("script.py", source.content.splitlines()), source.tree, None, ROWS)
    vm = Interpreter(program, HANDLERS, 10**6)
    vm.run(source.tree.body)
    return vm, vm.names.frame.scope.globals.names


def pieces(value: Value) -> Iterator[Value]:
    if isinstance(value, Seq):
        yield from (piece for item in value.items for piece in pieces(item))
    elif isinstance(value, Alt):
        yield from (piece for _, option in value.options for piece in pieces(option))
    else:
        yield value


def accounted(body: str) -> bool:
    """Whether `u` is behind `r`, as far as that has a history; what isn't known at all says so itself."""
    vm, names = globals_of(body)
    unknown = names["u"]
    assert isinstance(unknown, Unknown)
    for piece in pieces(names["r"]):
        nodes = upstream(vm.graph.nodes(piece))
        values = [node.facts["value"] for node in nodes if node.facts and "value" in node.facts]
        behind = any(unknown.why in list(whys(value)) for value in values)
        if not behind and not isinstance(piece, (Unknown, Const)):
            return False
    return True


def calls(surface: str) -> Iterator[str]:
    """A call of each operation for each of its operands, with that one unknown."""
    rows, form = SURFACES[surface]
    for name in table.names(surface):
        for effect in rows(name) if name.rpartition(".")[2] not in PASS_NONE else ():
            yield from _each(name, effect, form)


def _each(name: str, effect: Effect, form: str) -> Iterator[str]:
    arguments = [(arg, kind) for arg, kind in zip(effect.args, effect.kinds, strict=True) if arg != "out"]
    for i, (arg, kind) in enumerate(arguments):
        for unknown in UNKNOWN.get(kind, ()) if arg not in TOLERANCES else ():
            given = [unknown if i == j else GIVEN[other] for j, (_, other) in enumerate(arguments)]
            yield form.format(name, ", ".join(given), given[0], ", ".join(given[1:]))


@pytest.mark.parametrize("surface", SURFACES)
def test_an_unknown_operand_is_in_the_account_of_the_result(surface: str) -> None:
    every = list(calls(surface))
    assert len(every) > 100
    assert [call for call in every if not accounted(f"r = {call}\n")] == []


FORMS = [
    'torch.einsum("ij,jk", w, u)', 'torch.einsum("ij,jk", [w, u])', 'einops.pack([w, u], "* a")',
    'einops.einsum(w, u, "i j, j k -> i k")', "sum([w, u])", "sum([w.sum(), elsewhere.x(), u])", "w + u",
    "u + w", "w @ u", "-u + w", "2 ** u + w", "torch.stack([x * 2 for x in [w, u]])", "max(w, u)",
    "torch.stack([w if elsewhere.flag() else u, w])", "torch.stack([w, u.loss])", "torch.stack([w, u[0]])",
    "torch.stack([w, u.sum()])", "torch.stack([w, copy.deepcopy(u)])", "nn.LSTM(3, 3)(w, (w, u))[0]",
    "torch.stack(list({'a': w, 'b': u}.values()))", "nn.GRU(3, 3)(w, u)[0]", "nn.Bilinear(3, 3, 3)(w, u)",
    "nn.MultiheadAttention(3, 1)(w, w, u)[0]", "torch.distributions.Normal(w, u).rsample()",
    "torch.distributions.Normal(w, u).log_prob(w)", "torch.stack([w, *u])", "torch.cat([w] + [u])",
    "torch.stack([torch.stack([w, u]), w])", "torch.utils.checkpoint.checkpoint(lambda a, b: a + b, w, u)",
]  # fmt: skip
WRITES = {
    "added to": "r = w * 1\nr += u\n",
    "put into an entry": "r = torch.zeros(3, 3)\nr[0] = u\n",
    "copied": "r = w * 1\nr.copy_(u)\n",
    "written through a view": "r = w * 1\nv = r[0]\nv += u\n",
    "put into a list": "xs = [w]\nxs.insert(0, u)\nr = torch.cat(xs)\n",
    "an argument among several": "def f(*xs):\n    return torch.stack(xs)\nr = f(w, u)\n",
    "an entry of a total": "r = torch.zeros(1)\nfor x in [w, u]:\n    r += x.sum()\n",
}


@pytest.mark.parametrize(
    "body", [*(f"r = {form}\n" for form in FORMS), *WRITES.values()], ids=[*FORMS, *WRITES]
)
def test_however_it_is_given_it_is_in_the_account(body: str) -> None:
    assert accounted(body)


def test_what_is_not_given_is_not_in_the_account() -> None:
    assert not accounted("r = torch.stack([w, w])\n")
