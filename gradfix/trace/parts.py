"""What of torch each part of the recorder stands on: where that has another shape, the part is off."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    FunctionType,
    MethodDescriptorType,
    WrapperDescriptorType,
)
from typing import Any, TypeAlias

from gradfix.trace.state import State

Watcher: TypeAlias = Callable[..., Any]
"""What stands in front of a function of torch: it is given that function first, then its arguments."""

PLAIN = (FunctionType, BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType)
BY_CLASS = (classmethod, ClassMethodDescriptorType)


class Once:
    """A call of the program: made once, its outcome kept, whatever becomes of the recorder around it."""

    __slots__ = ("error", "made", "real", "result")

    def __init__(self, real: Any) -> None:
        self.real = real
        self.made = False
        self.result: Any = None
        self.error: BaseException | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.made = True
        try:
            self.result = self.real(*args, **kwargs)
        except BaseException as error:
            self.error = error
            raise
        return self.result

    def outcome(self, mistake: BaseException, *args: Any, **kwargs: Any) -> Any:
        """What the program gets although the recorder has failed around it."""
        if self.error is not None:
            raise self.error
        return self.result if self.made else self.real(*args, **kwargs)


def guarded(state: State, part: str, watcher: Watcher, real: Any) -> Any:
    """A function of torch, watched; the watcher's own mistakes end the watching and nothing else."""

    @functools.wraps(real)
    def watched(*args: Any, **kwargs: Any) -> Any:
        if part in state.blind:
            return real(*args, **kwargs)
        call = Once(real)
        try:
            return watcher(call, *args, **kwargs)
        except Exception as mistake:
            if mistake is call.error:
                raise
            state.off(part, mistake)
            return call.outcome(mistake, *args, **kwargs)

    return watched


class Patches:
    """The functions of torch that are watched, and how to put them back."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.replaced: list[tuple[Any, str, Any]] = []

    def watch(self, part: str, owner: Callable[[], Any], name: str, watcher: Watcher) -> None:
        """Stand in front of one function, if it is there."""
        with self.state.part(part):
            place = owner()
            watched = self._around(part, inspect.getattr_static(place, name), getattr(place, name), watcher)
            self.replaced.append((place, name, vars(place).get(name)))
            setattr(place, name, watched)

    def _around(self, part: str, raw: Any, real: Any, watcher: Watcher) -> Any:
        if not isinstance(raw, BY_CLASS):
            if not isinstance(raw, PLAIN):
                raise TypeError(f"{real!r} is a {type(raw).__name__}"[:100])
            return guarded(self.state, part, watcher, real)

        def bound(cls: Any, *args: Any, **kwargs: Any) -> Any:
            return raw.__get__(None, cls)(*args, **kwargs)

        return classmethod(guarded(self.state, part, watcher, functools.update_wrapper(bound, real)))

    def undo(self) -> None:
        """Put everything back, the latest first."""
        for owner, name, own in reversed(self.replaced):
            if own is None:
                delattr(owner, name)
            else:
                setattr(owner, name, own)
        self.replaced.clear()
