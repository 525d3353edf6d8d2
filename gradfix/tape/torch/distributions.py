"""torch.distributions: what is drawn has no history unless it is reparametrised, and log_prob has one."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gradfix.tape.domain.graph import Node, Tensor
from gradfix.tape.domain.values import Const, Unknown
from gradfix.tape.effects import shapes

if TYPE_CHECKING:
    from gradfix.tape.domain.values import Shape, Value
    from gradfix.tape.machine.machine import Machine

PACKAGE = "torch.distributions."
KINDS = frozenset({
    "Normal", "Categorical", "Bernoulli", "Beta", "Gamma", "Uniform", "LogNormal", "Laplace", "Exponential",
    "MultivariateNormal", "Dirichlet", "OneHotCategorical", "Binomial", "Poisson", "Cauchy", "Gumbel",
})  # fmt: skip
DISCRETE = frozenset({"Categorical", "Bernoulli", "OneHotCategorical", "Binomial", "Poisson"})
"""Those whose samples can't be reparametrised."""
SPREAD = frozenset({"Categorical", "Bernoulli", "OneHotCategorical"})
"""Those whose entropy hangs on all of their parameters; a normal distribution's doesn't on where it lies."""
SPENT = {"Categorical": 1, "OneHotCategorical": 1, "Dirichlet": 1, "MultivariateNormal": 1}
"""How many dimensions of the first parameter are one event's: each event has one probability."""
DRAWN = frozenset(SPENT) - {"Categorical"}
"""Those whose samples have the event's dimensions."""


def distribution_method(
    machine: Machine, callee: Unknown, args: Sequence[Value], node: ast.AST
) -> Value | None:
    """`sample`, `rsample`, `entropy` and `log_prob` of a distribution whose parameters are followed."""
    path, _, name = callee.origin.removeprefix(PACKAGE).rpartition(".")
    kind, dist = path.rpartition(".")[2], callee.holds[0] if callee.holds else None
    if kind not in KINDS or not isinstance(dist, Unknown):
        return None
    given = [value for value in dist.holds if machine.graph.requires(value) is not False]
    if not any(machine.graph.requires(value) is True for value in given):
        return None
    whole, batch = _sizes(kind, dist.holds)
    sizes = None if args else whole if kind in DRAWN else batch
    if name == "sample":
        return _drawn(machine, given, node, "drawn" if kind in DISCRETE else "sample", sizes)
    if name == "rsample":
        drawn = machine.results.output(machine.recording.node(name, machine.here.at(node), given))
        drawn.shape = sizes
        return drawn
    if name == "entropy" and kind in SPREAD:
        made = machine.recording.node(name, machine.here.at(node), given)
        made.saves = made.requires is True
        spread = machine.results.output(made)
        spread.shape = batch
        return spread
    if name == "log_prob":
        return _log_prob(machine, kind, batch, [*given, *args], node)
    return None


def _log_prob(machine: Machine, kind: str, batch: Shape, operands: Sequence[Value], node: ast.AST) -> Tensor:
    """One number for each of what was drawn, or more where one of many is asked about."""
    made = machine.recording.node("log_prob", machine.here.at(node), operands)
    made.saves = made.requires is True
    result = machine.results.output(made)
    asked = operands[-1]
    if isinstance(asked, Tensor) and asked.shape is not None and batch is not None:
        rows = asked.shape[: len(asked.shape) - (kind in DRAWN)]
        result.shape = shapes.broadcast([batch, rows])
    elif shapes.many(batch):
        made.facts = {**(made.facts or {}), "several": True}
    return result


def _sizes(kind: str, held: Sequence[Value]) -> tuple[Shape, Shape]:
    """The shape of what a distribution draws together with the events' own dimensions, and without them."""
    sizes = [() if isinstance(one, Const) else one.shape if isinstance(one, Tensor) else None for one in held]
    spent = SPENT.get(kind, 0)
    whole = (sizes[0] if sizes else None) if spent else shapes.broadcast(sizes)
    return whole, None if whole is None or len(whole) < spent else whole[: len(whole) - spent]


def _drawn(machine: Machine, given: Sequence[Value], node: ast.AST, how: str, sizes: Shape) -> Tensor:
    """A sample knows nothing of what it was drawn from."""
    parents = tuple(inner for value in given for inner in machine.graph.nodes(value))
    made = Node("sample", machine.here.at(node), parents, False)
    made.cut, made.cut_place = how, made.place
    made.path = machine.here.path
    made.lean = frozenset().union(*(machine.graph.lean(value) for value in given))
    drawn = machine.results.output(made)
    drawn.requires, drawn.shape = False, sizes
    return drawn
