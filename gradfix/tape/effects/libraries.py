"""What other libraries put around torch's own layers, by their documentation: names, and how they build."""

from __future__ import annotations

from collections.abc import Mapping

OF_OPENMMLAB = (
    "mmcv.runner", "mmcv.runner.base_module", "mmengine.model", "mmengine.model.base_module",
)  # fmt: skip
SAME_AS: Mapping[str, str] = {
    f"{package}.{name}": f"torch.nn.{name}"
    for package in OF_OPENMMLAB
    for name in ("ModuleList", "Sequential", "ModuleDict")
}
"""Containers that are torch's with an initialiser: they hold and call their modules as those do."""
CONV_MODULES = frozenset({
    "mmcv.cnn.ConvModule", "mmcv.cnn.bricks.ConvModule", "mmcv.cnn.bricks.conv_module.ConvModule",
})  # fmt: skip
"""A convolution, a norm and an activation in a row."""
CONV_MODULE_TAKES = (
    "in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups", "bias",
    "conv_cfg", "norm_cfg", "act_cfg", "inplace",
)  # fmt: skip
CONVOLUTION_TAKES = CONV_MODULE_TAKES[:7]
ACTIVATIONS: Mapping[str, str] = {
    name: name
    for name in ("ReLU", "LeakyReLU", "PReLU", "RReLU", "ReLU6", "ELU", "Sigmoid", "Tanh", "GELU", "SiLU")
}
"""What an `act_cfg` names, and the layer of torch that it builds."""
NEVER_IN_PLACE = frozenset({"Tanh", "PReLU", "Sigmoid", "GELU"})
"""Those that aren't told `inplace`."""
