"""What stands in for packages that aren't installed; a driver that needs it has its text."""

from __future__ import annotations

import sys
from typing import Any
from unittest.mock import MagicMock

import torch
from torch import nn

from gradfix.driver.recipe import ASKED


class Absent(MagicMock):
    """Does nothing: what it goes round it gives, what it is to dress it leaves bare."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given: Any = args[0] if args else None
        if str(self._mock_name).startswith("__"):
            return super().__call__(*args, **kwargs)
        if callable(given) and hasattr(given, "__qualname__"):
            return given
        made = Absent(name=self._mock_name)
        if hasattr(given, "__iter__") and not isinstance(given, (str, bytes, dict, torch.Tensor, MagicMock)):
            made.configure_mock(__iter__=lambda _: iter(given), __len__=lambda _: len(given))
        return made

    def __mro_entries__(self, bases: Any) -> Any:
        return (Framework,) if str(self._mock_name).endswith("Module") else (Bare,)


class Bare:
    """A class of which nothing is known."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()


class Framework(nn.Module):
    """A module of a framework, whose trainer isn't there: it logs nothing and steps by hand."""

    current_epoch = global_step = 0
    device = torch.device("cpu")
    trainer = logger = Absent()
    log = log_dict = print = toggle_optimizer = untoggle_optimizer = lambda self, *_, **__: None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def save_hyperparameters(self, *_: Any, **__: Any) -> None:
        given = sys._getframe(1).f_locals.items()
        self.hparams = Options({name: one for name, one in given if name not in ("self", "__class__")})

    def optimizers(self, *_: Any, **__: Any) -> Any:
        own = vars(self)
        if "made" not in own:
            own["made"] = [one["optimizer"] if isinstance(one, dict) else one for one in self.configured()]
        return own["made"][0] if len(own["made"]) == 1 else own["made"]

    def configured(self) -> Any:
        made: Any = self.configure_optimizers
        found = made()
        found = found[0] if isinstance(found, tuple) and isinstance(found[0], list) else found
        return found if isinstance(found, (list, tuple)) else [found]

    def lr_schedulers(self) -> Any:
        return Absent()

    def manual_backward(self, loss: Any, *args: Any, **kwargs: Any) -> None:
        loss.backward(*args, **kwargs)


class Options(dict):  # type: ignore[type-arg]
    """What a module was built with, by name."""

    __getattr__ = dict.__getitem__


def framed(cls: Any) -> bool:
    """Whether it is a module of a framework that is installed."""
    return any(one.__name__ == "LightningModule" and one is not cls for one in getattr(cls, "__mro__", ()))


def alone(cls: Any) -> None:
    """A class whose trainer isn't there asks nothing of it."""
    for name in ASKED:
        setattr(cls, name, vars(Framework)[name])
