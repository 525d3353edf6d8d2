"""Who steps what: an optimizer that is handed over gets the modules that have new gradients when it steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from gradfix.driver.search.drafts import Draft, Path
from gradfix.driver.values import Config, Entries, Items, Source, Value

TORCH = "import torch"
UNKNOWN = "torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.01)"
"""One that steps nothing of anybody's: what it is for is seen when it steps."""


def optimizer(modules: Sequence[str]) -> Source:
    """A real one, over the parameters of modules that are named."""
    if not modules:
        return Source(UNKNOWN, (TORCH,))
    owners = " ".join(dict.fromkeys(one.partition("[")[0].partition(".")[0] for one in modules))
    if len(modules) == 1:
        return Source(f"torch.optim.SGD({modules[0]}.parameters(), lr=0.01)", (TORCH,), owners)
    listed = ", ".join(f"*{name}.parameters()" for name in modules)
    return Source(f"torch.optim.SGD([{listed}], lr=0.01)", (TORCH,), owners)


def loss(modules: Sequence[str]) -> Source:
    """A number that all of their parameters have a part in, as a loss that was computed elsewhere has."""
    if not modules:
        return Source("torch.ones((), requires_grad=True).clone()", (TORCH,))
    owners = " ".join(dict.fromkeys(one.partition("[")[0].partition(".")[0] for one in modules))
    inner = f"{modules[0]}.parameters()"
    if len(modules) > 1:
        inner = f"({', '.join(f'*{name}.parameters()' for name in modules)})"
    return Source(f"sum(one.square().sum() for one in {inner})", (), owners)


def is_optimizer(value: Value) -> bool:
    """Whether it is one of ours."""
    return isinstance(value, Source) and value.text.startswith("torch.optim.SGD(")


@dataclass(slots=True)
class Stepping:
    """Sees whose gradients are new at each step of one run."""

    made: list[tuple[Path, Any]]
    """What was made of the draft's values so far."""
    own: dict[str, nn.Module] = field(default_factory=dict)
    """Modules that nobody has handed over."""
    fresh: dict[Path, set[Any]] = field(default_factory=dict)
    known: dict[Any, list[Any]] = field(default_factory=dict)

    def modules(self) -> dict[Any, nn.Module]:
        """All that can be stepped."""
        handed: dict[Any, nn.Module] = {path: one for path, one in self.made if isinstance(one, nn.Module)}
        known = {id(one) for one in handed.values()}
        return {**handed, **{name: one for name, one in self.own.items() if id(one) not in known}}

    def __call__(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Somebody is about to step."""
        at = next((path for path, one in self.made if one is optimizer), None)
        for owner, module in self.modules().items():
            now = [marked(one) for one in module.parameters()]
            old = self.known.get(owner, [()] * len(now))
            self.known[owner] = now
            if at is not None and any(one and one != was for one, was in zip(now, old, strict=False)):
                self.fresh.setdefault(at, set()).add(owner)

    def pairs(self) -> dict[Path, list[Any]]:
        """Whom each of them steps: those first that have new gradients of few."""
        taken: set[Any] = set()
        found: dict[Path, list[Any]] = {}
        for path in sorted(self.fresh, key=lambda path: len(self.fresh[path])):
            reach = {one for one in self.fresh[path] if path[0] == "call" or one[0] == "build"}
            own = reach - taken  # what something is built with is there before it
            if own:
                found[path] = [owner for owner in self.modules() if owner in own]
            taken |= own
        return found


def marked(parameter: Any) -> tuple[int, int] | tuple[()]:
    """Which gradient a parameter has: another one, once something was added to it."""
    return (id(parameter.grad), parameter.grad._version) if parameter.grad is not None else ()


def said(draft: Draft, path: Path) -> str:
    """How a program says what is at a place of a draft."""
    value: Value = getattr(draft, path[0])[path[1]].value
    text = str(getattr(draft, path[0])[path[1]].name)
    for step in path[2:]:
        if isinstance(value, Items):
            text, value = f"{text}[{step}]", value.items[step]
        elif isinstance(value, Entries):
            text, value = f"{text}[{value.entries[step][0]}]", value.entries[step][1]
        elif isinstance(value, Config):
            text, value = f"{text}.{value.attributes[step][0]}", value.attributes[step][1]
        else:
            return ""
    return text


def of_subject(name: str, subject: Any) -> Iterator[tuple[str, nn.Module]]:
    """The modules of what was built: itself, or what it keeps."""
    if isinstance(subject, nn.Module):
        yield name, subject
        return
    for key, one in vars(subject).items() if hasattr(subject, "__dict__") else ():
        if isinstance(one, nn.Module) and any(True for _ in one.parameters()):
            yield f"{name}.{key}", one


def repaired(draft: Draft, pairs: dict[Path, tuple[str, ...]]) -> Draft:
    """The same with each optimizer over what it steps."""
    changes = {path: optimizer(names) for path, names in pairs.items() if is_optimizer(draft.at(path))}
    return draft.changed({path: one for path, one in changes.items() if draft.at(path) != one}, 0)
