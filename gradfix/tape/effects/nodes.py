"""What autograd's nodes are called, and how a text spells what makes them: for messages that name nodes."""

from __future__ import annotations

import ast
from collections.abc import Mapping

OPERATORS: Mapping[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow", ast.MatMult: "matmul",
}  # fmt: skip
MADE_BY: Mapping[str, tuple[str, ...]] = {
    "nativebatchnorm": ("batchnorm", "bn", "norm"),
    "cudnnbatchnorm": ("batchnorm", "bn", "norm"),
    "miopenbatchnorm": ("batchnorm", "bn", "norm"),
    "nativelayernorm": ("layernorm", "ln", "norm"),
    "nativegroupnorm": ("groupnorm", "gn", "norm"),
    "convolution": ("conv",),
    "cudnnconvolution": ("conv",),
    "mkldnnconvolution": ("conv",),
    "thnnconv2d": ("conv",),
    "slowconvdilated2d": ("conv",),
    "addmm": ("linear", "fc", "addmm", "proj"),
    "mm": ("mm", "matmul", "linear", "fc", "proj"),
    "bmm": ("bmm", "matmul", "einsum"),
    "unsafeview": ("matmul", "linear", "view", "proj", "fc"),
    "hardtanh": ("relu6", "hardtanh"),
    "nativedropout": ("dropout", "drop"),
    "fuseddropout": ("dropout", "drop"),
    "div": ("div", "normalize", "mean"),
    "truediv": ("div",),
    "mul": ("mul", "dropout"),
    "linalgvectornorm": ("norm",),
    "clampmin": ("clamp", "relu"),
    "upsamplebilinear2d": ("interpolate", "upsample"),
    "upsamplenearest2d": ("interpolate", "upsample"),
    "asstrided": ("subscript", "view", "slice", "select", "chunk", "split"),
    "slice": ("subscript",),
    "select": ("subscript",),
    "index": ("subscript",),
    "copyslices": ("item",),
}
"""By which beginnings of names the text says what a node is made by, where that isn't the node's own name."""
WEIGHTS = frozenset({"t", "transpose", "permute", "asstrided", "view", "numpyt"})
"""What makes a layer's view of its weight, which is what a step writes over."""
PARTS = frozenset({"asstrided", "copyslices", "select", "slice", "indexput", "indexputimpl"})
"""What assigning to a part of a tensor leaves behind."""
VIEWS = frozenset(
    {"asstrided", "select", "slice", "unbind", "split", "index", "view", "copyslices", "unsafeview"}
)
VIEWING = frozenset(
    {"view", "reshape", "view_as", "flatten", "t", "transpose", "squeeze", "unsqueeze", "chunk"}
)
"""Methods whose results are views, mostly."""
KEEPS_ITS_RESULT = ("relu", "sigmoid", "tanh", "softmax", "exp", "sqrt", "norm", "elu", "prod")
"""Beginnings of names of what saves its result for backward."""
ACTIVATIONS = frozenset({"relu", "dropout", "nativedropout", "leakyrelu", "hardtanh", "silu", "elu"})
"""What also works in place."""
INPLACE_AT: Mapping[str, int] = {
    "ReLU": 0, "ReLU6": 0, "SiLU": 0, "LeakyReLU": 1, "Dropout": 1, "ELU": 1, "Hardtanh": 2,
}  # fmt: skip
"""Which argument of a module that is not named says `inplace`."""
EXPANDING = frozenset({"expand", "expand_as", "broadcast_to"})
"""What lays several elements on one piece of memory."""
CUTTING: Mapping[str, tuple[int, str]] = {
    **dict.fromkeys(("detach", "detach_"), (5, "cuts the graph")),
    **dict.fromkeys(("item", "tolist"), (5, "makes plain numbers of it")),
    "numpy": (5, "makes a numpy array of it"),
    **dict.fromkeys(("tensor", "from_numpy"), (4, "makes a new tensor of values only")),
    **dict.fromkeys(("as_tensor", "Tensor", "FloatTensor"), (3, "makes a new tensor of values only")),
    "Variable": (2, "wraps values anew"),
    "Parameter": (2, "makes a new leaf"),
    **dict.fromkeys(("argmax", "argmin"), (5, "has no gradient")),
    **dict.fromkeys(("bincount", "searchsorted"), (4, "has no gradient")),
    **dict.fromkeys(("sample", "multinomial"), (4, "draws, which has no gradient")),
    "eq": (4, "compares, which has no gradient"),
    "round": (4, "has a gradient of zero"),
    "sign": (3, "has a gradient of zero"),
    **dict.fromkeys(("long", "int", "bool"), (4, "makes integers or bools of it")),
    "float": (1, "may make a plain number of it"),
}
"""What a call of this name does to a graph, and how much that counts."""
