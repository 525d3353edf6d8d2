"""torch.distributions: what is drawn has no history unless it is reparametrised, and log_prob has one."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gradfix.tape.domain.graph import Node
from gradfix.tape.domain.values import Unknown

if TYPE_CHECKING:
    from gradfix.tape.domain.values import Value
    from gradfix.tape.machine.machine import Machine

PACKAGE = "torch.distributions."
KINDS = frozenset({
    "Normal", "Categorical", "Bernoulli", "Beta", "Gamma", "Uniform", "LogNormal", "Laplace", "Exponential",
    "MultivariateNormal", "Dirichlet", "OneHotCategorical", "Binomial", "Poisson", "Cauchy", "Gumbel",
})  # fmt: skip
DISCRETE = frozenset({"Categorical", "Bernoulli", "OneHotCategorical", "Binomial", "Poisson"})
"""Those whose samples can't be reparametrised."""


def distribution_method(
    machine: Machine, callee: Unknown, args: Sequence[Value], node: ast.AST
) -> Value | None:
    """`sample`, `rsample` and `log_prob` of a distribution whose parameters are followed."""
    kind, _, name = callee.origin.removeprefix(PACKAGE).rpartition(".")
    dist = callee.holds[0] if callee.holds else None
    if kind.rpartition(".")[2] not in KINDS or not isinstance(dist, Unknown):
        return None
    given = [value for value in dist.holds if machine.graph.requires(value) is not False]
    if not any(machine.graph.requires(value) is True for value in given):
        return None
    if name == "sample":
        return _drawn(machine, given, node, "drawn" if kind.rpartition(".")[2] in DISCRETE else "sample")
    if name in ("rsample", "log_prob"):
        made = machine.recording.node(
            name, machine.here.at(node), [*given, *args] if name == "log_prob" else given
        )
        made.saves = made.requires is True and name == "log_prob"
        return machine.results.output(made)
    return None


def _drawn(machine: Machine, given: Sequence[Value], node: ast.AST, how: str) -> Value:
    """A sample knows nothing of what it was drawn from."""
    parents = tuple(inner for value in given for inner in machine.graph.nodes(value))
    made = Node("sample", machine.here.at(node), parents, False)
    made.cut, made.cut_place = how, made.place
    made.path = machine.here.path
    made.lean = frozenset().union(*(machine.graph.lean(value) for value in given))
    drawn = machine.results.output(made)
    drawn.requires = False
    return drawn
