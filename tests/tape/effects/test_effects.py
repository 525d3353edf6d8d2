"""The effects table: the facts that rules lean on, and torch itself as the referee of all of it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from gradfix.tape.domain.effect import Effect
from gradfix.tape.effects.operations import DUNDERS
from gradfix.tape.effects.table import (
    compared_with,
    function,
    functional,
    functional_inplace,
    method,
    module,
    recorded_with,
)


def saved(effect: Effect) -> set[str]:
    return {what for what, _ in effect.saves}


def with_args(effects: tuple[Effect, ...], *args: str) -> Effect:
    """The overload that has these arguments, numbers marked by `:n`."""
    for effect in effects:
        named = [f"{a}:n" if k == "number" else a for a, k in zip(effect.args, effect.kinds, strict=True)]
        if all(a in named for a in args):
            return effect
    raise LookupError(args)


SURFACES = {"method": method, "function": function, "functional": functional, "in place": functional_inplace}
SAVE_THEIR_RESULT = {
    "method": "exp sigmoid tanh relu sqrt rsqrt reciprocal std prod cumprod logsumexp norm relu_ exp_",
    "function": "exp softmax norm linalg.norm",
    "functional": "relu softmax sigmoid tanh log_softmax leaky_relu_ elu_ celu_ selu_",
    "in place": "relu leaky_relu elu celu selu",
}
DO_NOT_NEED_THEIR_RESULT = {
    "method": "add sub mul div matmul log abs clamp where masked_fill clone",
    "functional": """linear conv2d batch_norm layer_norm group_norm dropout leaky_relu elu gelu silu softplus
        hardtanh mish max_pool2d interpolate pad mse_loss""",
    "in place": "silu hardtanh mish dropout hardswish relu6",
}


def listed(names: dict[str, str]) -> list[tuple[str, str]]:
    return [(surface, name) for surface, text in names.items() for name in text.split()]


def test_the_table_was_compared_with_the_newest_torch_allowed() -> None:
    assert compared_with()[-1] == "2.15.0"


def test_what_not_every_torch_saves_is_not_claimed() -> None:
    assert all(saved(effect) == set() for effect in function("combinations"))
    assert all(effect.constant == () for effect in function("special.bessel_j0"))


@pytest.mark.parametrize(("surface", "name"), listed(SAVE_THEIR_RESULT))
def test_result_is_saved_by_every_overload(surface: str, name: str) -> None:
    effects = SURFACES[surface](name)
    assert effects
    assert all("result" in saved(e) for e in effects if "out" not in e.writes)


@pytest.mark.parametrize(("surface", "name"), listed(DO_NOT_NEED_THEIR_RESULT))
def test_result_may_be_overwritten(surface: str, name: str) -> None:
    effects = SURFACES[surface](name)
    assert effects
    assert not any(what.startswith("result") for e in effects for what in saved(e))


@pytest.mark.parametrize("name", ["mul", "matmul", "mm", "__mul__", "__matmul__"])
def test_a_product_saves_a_factor_only_for_the_other_factor(name: str) -> None:
    effect = method(name)[0]
    first, second = effect.args
    assert dict(effect.saves) == {first: (second,), second: (first,)}


def test_a_product_with_a_number_saves_no_tensor_but_has_one_backward() -> None:
    effect = with_args(method("mul"), "other:n")
    assert effect.saves == ()
    assert effect.once


def test_addition_may_be_backpropagated_twice() -> None:
    assert not any(e.once for e in method("add"))


@pytest.mark.parametrize("name", ["conv2d", "conv1d", "conv_transpose2d"])
def test_convolution_saves_input_and_weight_whoever_needs_a_gradient(name: str) -> None:
    saves = dict(functional(name)[0].saves)
    assert saves["input"] == saves["weight"] == ("input", "weight", "bias")


def test_mse_saves_both_sides_for_either() -> None:
    assert dict(functional("mse_loss")[0].saves) == {
        "input": ("input", "target"),
        "target": ("input", "target"),
    }


def test_power_saves_its_base() -> None:
    assert dict(with_args(method("pow"), "exponent:n").saves) == {"self": ("self",)}


def test_an_index_and_a_mask_are_saved() -> None:
    assert dict(with_args(method("masked_fill"), "mask", "value:n").saves) == {"mask": ("self",)}
    assert [dict(e.saves) for e in method("__getitem__") if e.kinds[1] == "tensor"] == [{"index": ("self",)}]
    assert dict(functional("embedding")[0].saves) == {"input": ("weight",)}


def test_a_slice_is_a_view_and_an_indexed_copy_is_not() -> None:
    assert [(e.kinds[1], e.view) for e in method("__getitem__")] == [("other", "always"), ("tensor", "")]


def test_setting_items_writes_self() -> None:
    assert {e.writes for e in method("__setitem__")} == {("self",)}


@pytest.mark.parametrize(
    ("name", "view"),
    [
        *(
            (n, "always")
            for n in ("view", "expand", "permute", "transpose", "t", "unsqueeze", "squeeze", "select")
        ),
        *((n, "maybe") for n in ("reshape", "contiguous", "flatten", "type_as", "float", "half")),
        *((n, "many") for n in ("chunk", "split", "unbind")),
        *((n, "") for n in ("clone", "repeat", "add", "index_select", "masked_select", "int", "long")),
    ],
)
def test_views(name: str, view: str) -> None:
    assert {e.view for e in method(name)} == {view}


def test_to_may_return_its_tensor_in_every_overload() -> None:
    assert {(e.view, e.returns_self) for e in method("to")} == {("maybe", "maybe")}


@pytest.mark.parametrize("name", ["chunk", "split", "unbind", "meshgrid"])
def test_lists_have_no_known_length(name: str) -> None:
    assert {e.results for e in function(name)} == {0}


@pytest.mark.parametrize(
    "name", ["add_", "mul_", "relu_", "zero_", "copy_", "clamp_", "masked_fill_", "__iadd__"]
)
def test_in_place_methods_write_and_return_self(name: str) -> None:
    assert {(e.writes, e.returns_self) for e in method(name)} == {(("self",), "always")}


def test_out_is_written_and_returned() -> None:
    effect = next(e for e in function("add") if "out" in e.args)
    assert (effect.writes, effect.returns_self, effect.saves) == (("out",), "always", ())


def test_dropout_returns_its_input_in_evaluation_and_perhaps_in_training() -> None:
    states = {dict(e.when)["training"]: e for e in functional("dropout")}
    assert states[False].returns_self == "always"
    assert states[True].returns_self == "maybe"
    layer = module("Dropout")
    assert layer is not None
    assert (layer.train.returns_self, layer.eval.returns_self) == ("maybe", "always")


@pytest.mark.parametrize("name", ["round", "floor", "ceil", "sign", "trunc", "zero_"])
def test_zero_derivatives_vanish(name: str) -> None:
    assert all(e.vanishes for e in method(name))


@pytest.mark.parametrize(
    "name", ["relu", "clamp", "abs", "fmod", "remainder", "threshold", "repeat", "index_fill"]
)
def test_derivatives_that_are_zero_only_somewhere_do_not_vanish(name: str) -> None:
    assert not any(e.vanishes for e in function(name) + method(name))


@pytest.mark.parametrize("name", ["argmax", "__eq__", "gt", "isnan", "int", "argsort"])
def test_constants_carry_no_gradient(name: str) -> None:
    assert {e.constant for e in method(name)} == {(-1,)}


def test_max_over_a_dimension_has_values_and_constant_indices() -> None:
    effect = with_args(method("max"), "dim:n")
    assert (effect.results, effect.constant, saved(effect)) == (2, (1,), {"result1"})


@pytest.mark.parametrize("name", ["sum", "mean", "norm", "std"])
def test_reductions(name: str) -> None:
    assert "reduction" in {e.shape for e in method(name)}


@pytest.mark.parametrize("name", ["mse_loss", "cross_entropy", "l1_loss", "binary_cross_entropy"])
def test_losses_reduce(name: str) -> None:
    assert {e.shape for e in functional(name)} == {"reduction"}


@pytest.mark.parametrize("name", ["add", "mul", "exp", "where", "clamp", "masked_fill"])
def test_elementwise(name: str) -> None:
    assert {e.shape for e in method(name)} == {"elementwise"}


@pytest.mark.parametrize("name", ["matmul", "kron", "squeeze", "movedim", "unique"])
def test_other_shapes_are_unknown(name: str) -> None:
    assert "reduction" not in {e.shape for e in method(name)}
    assert not all(e.shape == "elementwise" for e in method(name))


def test_batch_norm_saves_its_buffers_and_counts_batches() -> None:
    layer = module("BatchNorm2d")
    assert layer is not None
    assert layer.parameters == ("weight", "bias")
    assert layer.buffers == ("running_mean", "running_var", "num_batches_tracked")
    assert {"input", "weight", "running_mean", "running_var"} == saved(layer.train)
    assert (layer.train.writes, layer.eval.writes) == (("num_batches_tracked",), ())


@pytest.mark.parametrize(
    ("name", "saves"), [("ReLU", {"result"}), ("LeakyReLU", {"result"}), ("SiLU", set()), ("Hardtanh", set())]
)
def test_in_place_layers_write_their_input(name: str, saves: set[str]) -> None:
    layer = module(name)
    assert layer is not None
    assert layer.inplace is not None
    assert (layer.inplace.writes, saved(layer.inplace)) == (("input",), saves)
    assert layer.defaults["inplace"] is False


def test_layers_know_their_constructor() -> None:
    linear, lstm = module("Linear"), module("LSTM")
    assert linear is not None
    assert lstm is not None
    assert linear.init[:3] == ("in_features", "out_features", "bias")
    assert dict(linear.train.saves) == {"input": ("weight",), "weight": ("input",)}
    assert lstm.init[:3] == ("input_size", "hidden_size", "num_layers")
    assert lstm.train.results == 2


def test_methods_have_self_first() -> None:
    assert {e.args[0] for n in ("where", "polygamma", "add", "index_put_") for e in method(n)} == {"self"}
    assert function("where")[0].args == ("condition", "input", "other")


def test_overloads_say_what_they_need_and_what_is_keyword_only() -> None:
    whole, along = method("sum")
    assert (whole.args, whole.needs, whole.keyword) == (("self", "dtype"), 1, 1)
    assert (along.args[:3], along.needs, along.keyword) == (("self", "dim", "keepdim"), 2, 1)
    assert functional("cross_entropy")[0].needs == 2


def test_unknown_names_have_no_effects() -> None:
    assert method("no_such_method") == function("no_such_function") == functional("no_such") == ()
    assert functional_inplace("gelu") == ()
    assert module("Sequential") is None


@pytest.mark.parametrize("name", DUNDERS)
def test_operators_are_known(name: str) -> None:
    assert method(name)


def test_the_table_needs_no_torch() -> None:
    check = "import sys; from gradfix.tape.effects.table import method; method('add'); "
    check += "sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


@pytest.mark.torch
def test_torch_fails_exactly_where_the_functionals_and_layers_say() -> None:
    pytest.importorskip("torch")
    from effects.generate import quietly
    from effects.modules import module_rows
    from effects.native import Report
    from effects.python import python_rows

    report = Report(provoke=True)
    with quietly():
        python_rows(report)
        module_rows(report)
    assert report.recorded > 400
    assert report.contradicted == []


@pytest.mark.torch
def test_the_table_is_what_the_installed_torch_does() -> None:
    torch = pytest.importorskip("torch")
    if torch.__version__.split("+")[0] != recorded_with():
        pytest.skip(f"the table was recorded with torch {recorded_with()}")
    from effects.generate import TABLE, generate, rendered
    from effects.native import Report

    report = Report()
    assert rendered(generate(report)).splitlines() == TABLE.read_text().splitlines()
    assert report.agreed > 400
    assert report.disagreements == report.joint == []
