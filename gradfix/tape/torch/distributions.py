"""torch.distributions: what is drawn has no history unless it is reparametrised, and log_prob has one."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gradfix.tape.domain.graph import Node
from gradfix.tape.domain.values import Unknown, Value
from gradfix.tape.interpreter.interpreter import Interpreter

PACKAGE = "torch.distributions."
KINDS = frozenset({
    "Normal", "Categorical", "Bernoulli", "Beta", "Gamma", "Uniform", "LogNormal", "Laplace", "Exponential",
    "MultivariateNormal", "Dirichlet", "OneHotCategorical", "Binomial", "Poisson", "Cauchy", "Gumbel",
})  # fmt: skip
DISCRETE = frozenset({"Categorical", "Bernoulli", "OneHotCategorical", "Binomial", "Poisson"})
"""Those whose samples can't be reparametrised."""


def distribution_method(
    vm: Interpreter, callee: Unknown, args: Sequence[Value], node: ast.AST
) -> Value | None:
    """`sample`, `rsample` and `log_prob` of a distribution whose parameters are followed."""
    kind, _, name = callee.origin.removeprefix(PACKAGE).rpartition(".")
    dist = callee.holds[0] if callee.holds else None
    if kind.rpartition(".")[2] not in KINDS or not isinstance(dist, Unknown):
        return None
    given = [value for value in dist.holds if vm.requires(value) is True]
    if not given:
        return None
    if name == "sample":
        return _drawn(vm, given, node, "drawn" if kind.rpartition(".")[2] in DISCRETE else "sample")
    if name in ("rsample", "log_prob"):
        made = vm.node(name, vm.at(node), [*given, *args] if name == "log_prob" else given)
        made.saves = made.requires is True and name == "log_prob"
        return vm.output(made)
    return None


def _drawn(vm: Interpreter, given: Sequence[Value], node: ast.AST, how: str) -> Value:
    """A sample knows nothing of what it was drawn from."""
    parents = tuple(inner for value in given for inner in vm.nodes(value))
    made = Node("sample", vm.at(node), parents, False)
    made.cut, made.cut_place = how, made.place
    made.path = vm.path
    made.lean = frozenset().union(*(vm.lean(value) for value in given))
    drawn = vm.output(made)
    drawn.requires = False
    return drawn
