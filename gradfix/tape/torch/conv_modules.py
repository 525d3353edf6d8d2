"""mmcv's ConvModule: a convolution, a norm and an activation, as its arguments say (convention B)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradfix.defects import NOTHING, Convention
from gradfix.defects.reasons import What
from gradfix.tape.domain.torch_values import Layer, Opaque
from gradfix.tape.domain.values import NONE, TRUE, Const, Map, Unknown
from gradfix.tape.domain.why import Why
from gradfix.tape.effects.libraries import (
    ACTIVATIONS,
    CONV_MODULE_TAKES,
    CONVOLUTION_TAKES,
    NEVER_IN_PLACE,
)
from gradfix.tape.torch.layers import make_layer
from gradfix.tape.torch.weights import weights

if TYPE_CHECKING:
    import ast

    from gradfix.tape.domain.values import Args, Kwargs, Value
    from gradfix.tape.interpreter.state import Notes

USUAL = Map({"type": Const("ReLU")})
"""The activation where nothing is said."""
BY_ITS_BOOK = frozenset({Convention.B})


def conv_module(notes: Notes, args: Args, kwargs: Kwargs, node: ast.Call) -> Layer | None:
    """The layers of `ConvModule(...)` in their order; None where the arguments leave that open."""
    given = {**dict(zip(CONV_MODULE_TAKES, args, strict=False)), **kwargs}
    if not given.keys() <= {*CONV_MODULE_TAKES, "with_spectral_norm"} or "with_spectral_norm" in given:
        return None
    activation = _activation(notes, given, node)
    if activation is None:
        return None
    layer = Layer("ConvModule", None, {}, notes.here.at(node))
    layer.lean = BY_ITS_BOOK
    layer.items = {"conv": _convolution(notes, given, node)}
    if given.get("norm_cfg", NONE) is not NONE:
        layer.items["norm"] = _unknown(notes, node)
    if activation is not NONE:
        layer.items["activate"] = activation
    return layer


def _convolution(notes: Notes, given: Kwargs, node: ast.Call) -> Value:
    if given.get("conv_cfg", NONE) is not NONE:
        return _unknown(notes, node)
    return make_layer(
        notes, "Conv2d", [], {one: given[one] for one in CONVOLUTION_TAKES if one in given}, node
    )


def _unknown(notes: Notes, node: ast.Call) -> Opaque:
    """A layer of which only its configuration would tell the class."""
    return Opaque(
        Unknown(Why(What.COMPUTED, "a layer by its configuration")), weights(notes.machine, node), NOTHING
    )


def _activation(notes: Notes, given: Kwargs, node: ast.Call) -> Value | None:
    """What comes last; NONE for nothing."""
    config = given.get("act_cfg", USUAL)
    if config is NONE:
        return NONE
    kind = config.items.get("type") if isinstance(config, Map) and not config.open else None
    name = ACTIVATIONS.get(kind.value) if isinstance(kind, Const) and isinstance(kind.value, str) else None
    if name is None or not isinstance(config, Map):
        return None
    more = {key: value for key, value in config.items.items() if isinstance(key, str) and key != "type"}
    if name not in NEVER_IN_PLACE:
        more.setdefault("inplace", given.get("inplace", TRUE))
    return make_layer(notes, name, [], more, node)
