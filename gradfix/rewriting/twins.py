"""What torch offers beside its in-place operations: their twins out of place, and where the flags stand."""

from __future__ import annotations

METHODS_TEXT = """
abs absolute acos acosh add addbmm addcdiv addcmul addmm addmv addr arccos arccosh arcsin arcsinh arctan
arctan2 arctanh asin asinh atan atan2 atanh baddbmm bitwise_and bitwise_left_shift bitwise_not bitwise_or
bitwise_right_shift bitwise_xor ceil clamp clamp_max clamp_min clip copysign cos cosh cumprod cumsum deg2rad
digamma div divide erf erfc erfinv exp exp2 expm1 fix floor floor_divide fmod frac gcd heaviside hypot i0
index_add index_copy index_fill index_put index_reduce lcm ldexp lerp lgamma log log10 log1p log2 logit
masked_fill masked_scatter mul multiply mvlgamma nan_to_num neg negative nextafter polygamma pow put rad2deg
reciprocal relu remainder renorm round rsqrt scatter scatter_add scatter_reduce sgn sigmoid sign sin sinc
sinh sqrt square squeeze sub subtract swapaxes swapdims t tan tanh transpose tril triu true_divide trunc
unsqueeze xlogy
"""

METHODS = frozenset(METHODS_TEXT.split())
"""The methods `m_` whose `m` gives the same values. Not: draws, copies and fills (`copy_`, `zero_`,
`uniform_`), which have none, and comparisons, whose twin has another dtype."""

FUNCTIONS_TEXT = """
abs acos acosh addmv alpha_dropout arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh ceil
celu clamp clamp_max clamp_min clip cos cosh deg2rad dropout elu erf erfc exp exp2 expm1
feature_alpha_dropout feature_dropout fix floor frac gcd hardtanh i0 index_put lcm ldexp leaky_relu log
log10 log1p log2 logit nan_to_num neg negative rad2deg reciprocal relu round rrelu rsqrt selu sigmoid sin
sinc sinh sqrt square tan tanh threshold trunc xlogy
"""

FUNCTIONS = frozenset(FUNCTIONS_TEXT.split())
"""The functions `f_` of torch and torch.nn.functional whose `f` gives the same values."""

FLAG_OF_FUNCTION = {
    "relu": 1, "relu6": 1, "selu": 1, "silu": 1, "mish": 1, "hardswish": 1, "hardsigmoid": 1,
    "elu": 2, "celu": 2, "leaky_relu": 2,
    "hardtanh": 3, "threshold": 3, "dropout": 3, "dropout1d": 3, "dropout2d": 3, "dropout3d": 3,
    "alpha_dropout": 3, "feature_alpha_dropout": 3,
    "rrelu": 4,
}  # fmt: skip
"""Which positional argument of a function in torch.nn.functional is `inplace`."""

FLAG_OF_MODULE = {
    "ReLU": 0, "ReLU6": 0, "SELU": 0, "SiLU": 0, "Mish": 0, "Hardswish": 0, "Hardsigmoid": 0,
    "ELU": 1, "CELU": 1, "LeakyReLU": 1, "Dropout": 1, "Dropout1d": 1, "Dropout2d": 1, "Dropout3d": 1,
    "AlphaDropout": 1, "FeatureAlphaDropout": 1,
    "Threshold": 2, "Hardtanh": 2, "RReLU": 2,
}  # fmt: skip
"""Which positional argument of a module in torch.nn is `inplace`; all of them default to False."""
