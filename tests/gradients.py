"""Runs programs under torch and tells the gradients that each of them ends up with.

Reads a line of JSON per question, paths each with the texts of the programs that pretend to stand there, and
answers with one record for each text. The texts of one question run in one fork of this process.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from warm import afresh, executed, forked, warm

if TYPE_CHECKING:
    import torch

Print: TypeAlias = "list[float] | None"
"""A tensor as three numbers that two different ones hardly share."""


def main() -> None:
    warm()
    watched = Steps()
    for line in sys.stdin:
        programs = [(Path(path), text) for path, texts in json.loads(line) for text in texts]
        answer, ended = forked(lambda: json.dumps([watched.record(*each) for each in programs]))  # noqa: B023
        crashed = {"error": f"the process ended with {ended}"}
        print(answer if not ended else json.dumps([crashed for _ in programs]), flush=True)


class Steps:
    """The gradients that every optimizer of a program finds at its steps."""

    def __init__(self) -> None:
        from torch.optim.optimizer import Optimizer, register_optimizer_step_pre_hook

        self.optimizers: list[torch.optim.Optimizer] = []
        self.steps: dict[int, list[list[Print]]] = {}
        self.backwards: list[list[Print]] = []
        built = Optimizer.__init__

        def counted(optimizer: torch.optim.Optimizer, *args: Any, **options: Any) -> None:
            built(optimizer, *args, **options)
            self.optimizers.append(optimizer)

        Optimizer.__init__ = counted  # type: ignore[assignment, method-assign]
        self._watch_backward()
        register_optimizer_step_pre_hook(self._step)

    def record(self, path: Path, text: str) -> dict[str, Any]:
        """How a program ends, its error, its gradients at steps and after backwards, its last values."""
        self.optimizers.clear()
        self.steps.clear()
        self.backwards.clear()
        names: dict[str, object] = {}
        with afresh():
            error = executed(path, text.encode(), names)
        leaves = list(_leaves(names.values()))
        held = [p for each in self.optimizers for group in each.param_groups for p in group["params"]]
        return {
            "error": error,
            "steps": [self.steps.get(id(each), []) for each in self.optimizers],
            "backwards": list(self.backwards),
            "values": [printed(leaf) for leaf in [*leaves, *held]],
        }

    def _watch_backward(self) -> None:
        """Note what each backward leaves in the leaves that it reaches."""
        import torch

        run = torch.autograd.backward

        def watched(tensors: Any, *args: Any, **options: Any) -> None:
            roots = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
            leaves = _reached(roots)
            run(tensors, *args, **options)
            self.backwards.append([printed(leaf.grad) for leaf in leaves])

        torch.autograd.backward = watched

    def _step(self, optimizer: torch.optim.Optimizer, *_: object) -> None:
        grads = [printed(p.grad) for group in optimizer.param_groups for p in group["params"]]
        self.steps.setdefault(id(optimizer), []).append(grads)


def _leaves(values: Any) -> Iterator[torch.Tensor]:
    """The leaves that require grad among a program's globals, and the parameters of its modules."""
    import torch

    for value in list(values):
        if isinstance(value, torch.nn.Module):
            yield from value.parameters()
        elif isinstance(value, torch.Tensor) and value.is_leaf and value.requires_grad:
            yield value


def _reached(roots: list[torch.Tensor]) -> list[torch.Tensor]:
    """The leaves that a backward from these tensors reaches, in the order of the graph."""
    import torch

    found: list[torch.Tensor] = []
    stack = [root.grad_fn for root in roots]
    seen: set[object] = set()
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if isinstance(leaf := getattr(node, "variable", None), torch.Tensor):
            found.append(leaf)
        stack.extend(following for following, _ in reversed(node.next_functions))
    return found


def printed(tensor: torch.Tensor | None) -> Print:
    import torch

    if tensor is None:
        return None
    flat = tensor.detach().to_dense().double().flatten()
    places = torch.arange(flat.numel(), dtype=torch.float64).cos()
    return [flat.sum().item(), flat.abs().sum().item(), (flat * places).sum().item()]


if __name__ == "__main__":
    main()
