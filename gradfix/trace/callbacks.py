"""The recorder for the first steps of a training that Lightning or transformers runs."""

from __future__ import annotations

import importlib
from typing import Any, TextIO

from gradfix.trace.watching import watch

LIGHTNING = ("lightning.pytorch.callbacks", "pytorch_lightning.callbacks")


class Stretch:
    """The first steps of a training, watched: begun and ended by a framework's hooks."""

    def __init__(self, steps: int, stream: TextIO | None) -> None:
        self.steps = steps
        self.stream = stream
        self.left = 0
        self.watching: watch | None = None

    def begin(self, model: Any, optimizers: list[Any]) -> None:
        """Training starts; what was left open by one that failed is closed."""
        self.end()
        inner = [getattr(one, "optimizer", one) for one in optimizers]
        self.left = self.steps
        self.watching = watch(model, *(one for one in inner if one is not None), stream=self.stream)
        self.watching.__enter__()

    def tell_at_once(self) -> None:
        """Where nobody says that a training has failed: report when a backward raises, and record no more."""
        watching = self.watching
        if watching is not None and watching.session is not None:
            watching.session.backwards.after_failure = self._failed

    def _failed(self) -> None:
        watching = self.watching
        if watching is not None and watching.session is not None and not watching.quiet:
            watching.tell()
            watching.quiet = True
            watching.session.hush()

    def step(self) -> None:
        """One more batch is done; after enough of them the report is made and torch is as before."""
        self.left -= 1
        if self.left <= 0:
            self.end()

    def end(self, error: BaseException | None = None) -> None:
        """Report, if that was not done."""
        watching, self.watching = self.watching, None
        if watching is not None:
            watching.__exit__(type(error) if error else None, error, None)


def lightning(steps: int = 3, stream: TextIO | None = None) -> Any:
    """A callback for `lightning.Trainer(callbacks=[lightning()])`."""
    stretch = Stretch(steps, stream)

    class GradientsFlow(imported(*LIGHTNING).Callback):  # type: ignore[misc]
        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            stretch.begin(pl_module, list(trainer.optimizers))

        def on_train_batch_end(self, *args: Any, **kwargs: Any) -> None:
            stretch.step()

        def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
            stretch.end(exception)

        def on_train_end(self, trainer: Any, pl_module: Any) -> None:
            stretch.end()

    return GradientsFlow()


def transformers(steps: int = 3, stream: TextIO | None = None) -> Any:
    """A callback for `transformers.Trainer(callbacks=[transformers()])`."""
    stretch = Stretch(steps, stream)

    class GradientsFlow(imported("transformers").TrainerCallback):  # type: ignore[misc]
        def on_train_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
            stretch.begin(given["model"], [given.get("optimizer")])
            stretch.tell_at_once()

        def on_step_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
            stretch.step()

        def on_train_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
            stretch.end()

    return GradientsFlow()


def imported(*names: str) -> Any:
    """The first of these modules that is installed."""
    for name in names[:-1]:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError:
            continue
    return importlib.import_module(names[-1])
