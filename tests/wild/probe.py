"""A program under the convention on `forward`: what goes in requires grad, what comes out is backpropagated.

A finding that leans on it (D) says nothing of a program that keeps to none of it. It is outside its convention
only if it is refuted where the module that it is in is called as the convention has it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn


class Probed(Exception):  # noqa: N818
    """Ends a program with what torch said of the module."""


def class_at(source: str, line: int) -> str:
    """The class whose text has a line."""
    classes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef))
    return next((one.name for one in classes if one.lineno <= line <= (one.end_lineno or 0)), "")


class Probe:
    """Calls a module of a class as the convention has it, the first time that anybody calls one."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.inside = False

    def __call__(self, module: nn.Module, given: tuple[Any, ...]) -> None:
        if type(module).__name__ == self.name and not self.inside:
            self.inside = True
            raise Probed(backpropagated(module, given))


def backpropagated(module: nn.Module, given: tuple[Any, ...]) -> str:
    """What torch says when a module's output is backpropagated in training mode; nothing where all is well."""
    module.train().requires_grad_()
    try:
        with torch.inference_mode(False), torch.enable_grad():
            result = module(*map(leaf, given))
            roots = [one for one in tensors(result) if one.requires_grad]
            torch.autograd.backward([one.sum() for one in roots])
    except RuntimeError as error:
        return str(error)
    return ""


def leaf(value: Any) -> Any:
    """The same data, computed from what requires grad."""
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.detach().clone().requires_grad_() * 1
    return value


def tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from tensors(one)
    elif isinstance(value, dict):
        yield from tensors(list(value.values()))
