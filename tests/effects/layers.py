"""What to call torch's Python-level functions and layers with, so that the recorder sees a typical use."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

GENERATOR = torch.Generator().manual_seed(0)


def x(*shape: int) -> Tensor:
    """Numbers between 0.1 and 0.9: probabilities, logits and positive values at once."""
    return torch.rand(shape, generator=GENERATOR) * 0.8 + 0.1


def c(*shape: int, classes: int = 3) -> Tensor:
    """Class numbers or indices."""
    return torch.randint(0, classes, shape, generator=GENERATOR)


def signs(*shape: int) -> Tensor:
    return c(*shape, classes=2) * 2.0 - 1


def words(text: str) -> list[str]:
    return text.split()


def spatial(dims: int, size: int = 8) -> tuple[int, ...]:
    return (2, 4, *[size] * dims)


def pooled(dims: int) -> tuple[Tensor, Tensor]:
    pool = getattr(torch.nn.functional, f"max_pool{dims}d")
    values, indices = pool(x(*spatial(dims)), 2, return_indices=True)
    return values, indices


Sample = dict[str, Any]
ONE = {"input": x(2, 4, 6)}
PAIR = {"input": x(4, 6), "target": x(4, 6)}
SIGNED = {"input": x(4, 6), "target": signs(4, 6)}
CLASSES = {"input": x(4, 6), "target": c(4)}
TRIPLET = {"anchor": x(4, 6), "positive": x(4, 6), "negative": x(4, 6)}
NORM = {
    "input": x(4, 6, 5),
    "running_mean": x(6),
    "running_var": x(6),
    "weight": x(6),
    "bias": x(6),
}

FUNCTIONALS: dict[str, Sample] = {
    **dict.fromkeys(
        words(
            "celu elu hardsigmoid hardswish hardtanh leaky_relu logsigmoid mish relu relu6 rrelu selu"
            " sigmoid silu softsign tanh tanhshrink dropout alpha_dropout feature_alpha_dropout"
            " dropout1d normalize glu"
        ),
        ONE,
    ),
    **{f"dropout{d}d": {"input": x(*spatial(d))} for d in (2, 3)},
    **dict.fromkeys(("softmax", "softmin", "log_softmax"), ONE | {"dim": 1}),
    "gumbel_softmax": {"logits": x(2, 4, 6)},
    "threshold": ONE | {"threshold": 0.5, "value": 0.1},
    **dict.fromkeys(
        words("mse_loss l1_loss smooth_l1_loss huber_loss kl_div poisson_nll_loss"),
        PAIR,
    ),
    **dict.fromkeys(words("hinge_embedding_loss soft_margin_loss"), SIGNED),
    **dict.fromkeys(words("cross_entropy nll_loss multi_margin_loss"), CLASSES | {"weight": x(6)}),
    "binary_cross_entropy": PAIR | {"weight": x(4, 6)},
    "binary_cross_entropy_with_logits": PAIR | {"weight": x(4, 6), "pos_weight": x(6)},
    "multilabel_soft_margin_loss": {"input": x(4, 6), "target": c(4, 6, classes=2).float()},
    "multilabel_margin_loss": {"input": x(4, 6), "target": c(4, 6)},
    "margin_ranking_loss": {"input1": x(4), "input2": x(4), "target": signs(4), "margin": 1.0},
    "cosine_embedding_loss": {"input1": x(4, 6), "input2": x(4, 6), "target": signs(4)},
    "gaussian_nll_loss": {"input": x(4, 6), "target": x(4, 6), "var": x(4, 6)},
    "triplet_margin_loss": TRIPLET,
    "triplet_margin_with_distance_loss": TRIPLET,
    "ctc_loss": {
        "log_probs": x(10, 2, 5).log_softmax(2),
        "targets": c(2, 3) + 1,
        "input_lengths": torch.tensor([10, 10]),
        "target_lengths": torch.tensor([3, 3]),
    },
    "batch_norm": NORM,
    "instance_norm": NORM,
    "layer_norm": {"input": x(4, 6), "normalized_shape": [6], "weight": x(6), "bias": x(6)},
    "rms_norm": {"input": x(4, 6), "normalized_shape": [6], "weight": x(6)},
    "group_norm": {"input": x(4, 6, 5), "num_groups": 2, "weight": x(6), "bias": x(6)},
    "local_response_norm": {"input": x(2, 4, 6), "size": 2},
    "embedding": {"input": c(4), "weight": x(5, 6)},
    "embedding_bag": {"input": c(4, 2), "weight": x(5, 6)},
    "interpolate": {"input": x(*spatial(2)), "scale_factor": 2.0},
    "upsample": {"input": x(*spatial(2)), "scale_factor": 2},
    "upsample_nearest": {"input": x(*spatial(2)), "scale_factor": 2},
    "upsample_bilinear": {"input": x(*spatial(2)), "scale_factor": 2},
    "affine_grid": {"theta": x(2, 2, 3), "size": [2, 4, 5, 5]},
    "grid_sample": {"input": x(*spatial(2)), "grid": x(2, 5, 5, 2)},
    "pad": {"input": x(2, 4, 6), "pad": [1, 1]},
    "fold": {"input": x(2, 12, 4), "output_size": [3, 3], "kernel_size": [2, 2]},
    "unfold": {"input": x(*spatial(2)), "kernel_size": [2, 2]},
    "conv_tbc": {"input": x(6, 2, 4), "weight": x(3, 4, 5), "bias": x(5)},
    **{f"lp_pool{d}d": {"input": x(*spatial(d)), "norm_type": 2.0, "kernel_size": 2} for d in (1, 2, 3)},
    **{f"max_pool{d}d": {"input": x(*spatial(d)), "kernel_size": 2} for d in (1, 2, 3)},
    **{f"max_pool{d}d_with_indices": {"input": x(*spatial(d)), "kernel_size": 2} for d in (1, 2, 3)},
    **{f"adaptive_max_pool{d}d": {"input": x(*spatial(d)), "output_size": 3} for d in (1, 2, 3)},
    **{f"adaptive_max_pool{d}d_with_indices": {"input": x(*spatial(d)), "output_size": 3} for d in (1, 2, 3)},
    **{f"adaptive_avg_pool{d}d": {"input": x(*spatial(d)), "output_size": 3} for d in (2, 3)},
    **{
        f"fractional_max_pool{d}d{tail}": {"input": x(*spatial(d)), "kernel_size": 2, "output_size": 3}
        for d in (2, 3)
        for tail in ("", "_with_indices")
    },
    **{
        f"max_unpool{d}d": {"input": pooled(d)[0], "indices": pooled(d)[1], "kernel_size": 2}
        for d in (1, 2, 3)
    },
}

Built = tuple[dict[str, Any], Sample]
"""(constructor arguments, forward arguments)."""
SOURCE = {"src": x(5, 2, 4)}
SOURCE_AND_TARGET = {"tgt": x(5, 2, 4), "memory": x(5, 2, 4)}
SMALL: dict[str, Any] = {"d_model": 4, "nhead": 2, "dim_feedforward": 6}


def _dims(name: str, built: Any, *dims: int) -> dict[str, Built]:
    return {name.format(d): built(d) for d in dims or (1, 2, 3)}


def _conv(dims: int) -> Built:
    return {"in_channels": 4, "out_channels": 5, "kernel_size": 3}, {"input": x(*spatial(dims))}


def _pool(**made: Any) -> Any:
    return lambda dims: (made, {"input": x(*spatial(dims))})


MODULES: dict[str, Built] = {
    **{
        name: ({}, ONE)
        for name in words(
            "CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid Mish"
            " PReLU RReLU ReLU ReLU6 SELU SiLU Sigmoid Softplus Softshrink Softsign Tanh Tanhshrink"
            " Dropout AlphaDropout FeatureAlphaDropout Dropout1d Flatten Identity"
        )
    },
    **{name: ({"dim": 1}, ONE) for name in ("Softmax", "Softmin", "LogSoftmax")},
    "Softmax2d": ({}, {"input": x(*spatial(2))}),
    "Threshold": ({"threshold": 0.5, "value": 0.1}, ONE),
    **_dims("Dropout{}d", _pool(), 2, 3),
    **{
        name: ({}, PAIR)
        for name in words(
            "BCELoss BCEWithLogitsLoss MSELoss L1Loss SmoothL1Loss HuberLoss KLDivLoss PoissonNLLLoss"
        )
    },
    **{
        name: ({}, {"input": x(4, 6), "target": signs(4, 6)})
        for name in ("HingeEmbeddingLoss", "SoftMarginLoss")
    },
    **{
        name: ({}, {"input": x(4, 6), "target": c(4)})
        for name in ("CrossEntropyLoss", "NLLLoss", "MultiMarginLoss")
    },
    "MultiLabelSoftMarginLoss": ({}, {"input": x(4, 6), "target": c(4, 6, classes=2).float()}),
    "MultiLabelMarginLoss": ({}, FUNCTIONALS["multilabel_margin_loss"]),
    "MarginRankingLoss": ({"margin": 1.0}, {"input1": x(4), "input2": x(4), "target": signs(4)}),
    "CosineEmbeddingLoss": ({}, FUNCTIONALS["cosine_embedding_loss"]),
    "GaussianNLLLoss": ({}, FUNCTIONALS["gaussian_nll_loss"]),
    "TripletMarginLoss": ({}, TRIPLET),
    "TripletMarginWithDistanceLoss": ({}, TRIPLET),
    "CTCLoss": ({}, FUNCTIONALS["ctc_loss"]),
    "AdaptiveLogSoftmaxWithLoss": (
        {"in_features": 6, "n_classes": 8, "cutoffs": [2, 4], "div_value": 1.5},
        {"input_": x(4, 6), "target": c(4, classes=8)},
    ),
    "Linear": ({"in_features": 6, "out_features": 5}, {"input": x(4, 6)}),
    "LazyLinear": ({"out_features": 5}, {"input": x(4, 6)}),
    "Bilinear": (
        {"in1_features": 6, "in2_features": 5, "out_features": 4},
        {"input1": x(4, 6), "input2": x(4, 5)},
    ),
    "Embedding": ({"num_embeddings": 5, "embedding_dim": 6}, {"input": c(4)}),
    "EmbeddingBag": ({"num_embeddings": 5, "embedding_dim": 6}, {"input": c(4, 2)}),
    **_dims("Conv{}d", _conv),
    **_dims("ConvTranspose{}d", _conv),
    **_dims("LazyConv{}d", _pool(out_channels=5, kernel_size=3)),
    **_dims("LazyConvTranspose{}d", _pool(out_channels=5, kernel_size=3)),
    **_dims("BatchNorm{}d", _pool(num_features=4)),
    **_dims("LazyBatchNorm{}d", _pool()),
    **_dims("InstanceNorm{}d", _pool(num_features=4)),
    **_dims("LazyInstanceNorm{}d", _pool()),
    "LayerNorm": ({"normalized_shape": 6}, ONE),
    "RMSNorm": ({"normalized_shape": 6}, ONE),
    "GroupNorm": ({"num_groups": 2, "num_channels": 4}, ONE),
    "LocalResponseNorm": ({"size": 2}, ONE),
    "CrossMapLRN2d": ({"size": 2}, {"input": x(*spatial(2))}),
    **_dims("MaxPool{}d", _pool(kernel_size=2)),
    **_dims("AvgPool{}d", _pool(kernel_size=2)),
    **_dims("LPPool{}d", _pool(norm_type=2.0, kernel_size=2)),
    **_dims("AdaptiveMaxPool{}d", _pool(output_size=3)),
    **_dims("AdaptiveAvgPool{}d", _pool(output_size=3)),
    **_dims("FractionalMaxPool{}d", _pool(kernel_size=2, output_size=3), 2, 3),
    **_dims(
        "MaxUnpool{}d",
        lambda d: ({"kernel_size": 2}, dict(zip(("input", "indices"), pooled(d), strict=True))),
    ),
    **{
        f"{kind}Pad{d}d": (
            {"padding": 1} | ({"value": 0.5} if kind == "Constant" else {}),
            {"input": x(*spatial(d))},
        )
        for kind in ("Reflection", "Replication", "Zero", "Circular", "Constant")
        for d in (1, 2, 3)
    },
    "Upsample": ({"scale_factor": 2}, {"input": x(*spatial(2))}),
    "UpsamplingNearest2d": ({"scale_factor": 2}, {"input": x(*spatial(2))}),
    "UpsamplingBilinear2d": ({"scale_factor": 2}, {"input": x(*spatial(2))}),
    "PixelShuffle": ({"upscale_factor": 2}, {"input": x(*spatial(2))}),
    "PixelUnshuffle": ({"downscale_factor": 2}, {"input": x(*spatial(2))}),
    "ChannelShuffle": ({"groups": 2}, {"input": x(*spatial(2))}),
    "Fold": ({"output_size": 3, "kernel_size": 2}, {"input": x(2, 12, 4)}),
    "Unfold": ({"kernel_size": 2}, {"input": x(*spatial(2))}),
    "Unflatten": ({"dim": 1, "unflattened_size": (2, 2)}, ONE),
    "CosineSimilarity": ({}, {"x1": x(4, 6), "x2": x(4, 6)}),
    "PairwiseDistance": ({}, {"x1": x(4, 6), "x2": x(4, 6)}),
    **{name: ({"input_size": 6, "hidden_size": 5}, {"input": x(3, 2, 6)}) for name in ("RNN", "LSTM", "GRU")},
    **{
        name: ({"input_size": 6, "hidden_size": 5}, {"input": x(2, 6)})
        for name in ("RNNCell", "LSTMCell", "GRUCell")
    },
    "MultiheadAttention": (
        {"embed_dim": 4, "num_heads": 2},
        {"query": x(5, 2, 4), "key": x(5, 2, 4), "value": x(5, 2, 4)},
    ),
    "TransformerEncoderLayer": (SMALL, SOURCE),
    "TransformerDecoderLayer": (SMALL, SOURCE_AND_TARGET),
    "TransformerEncoder": (
        {"encoder_layer": torch.nn.TransformerEncoderLayer(**SMALL), "num_layers": 1},
        SOURCE,
    ),
    "TransformerDecoder": (
        {"decoder_layer": torch.nn.TransformerDecoderLayer(**SMALL), "num_layers": 1},
        SOURCE_AND_TARGET,
    ),
    "Transformer": (
        SMALL | {"num_encoder_layers": 1, "num_decoder_layers": 1},
        {"src": x(5, 2, 4), "tgt": x(5, 2, 4)},
    ),
}

REPEATED = torch.tensor([0.5, 0.5, 0.7])
FUNCTIONS: dict[str, Sample] = {
    "norm": {"input": x(3, 4)},
    "split": {"tensor": x(4, 3), "split_size_or_sections": 2},
    "meshgrid": {"tensors": [x(3), x(4)]},
    "broadcast_tensors": {"tensors": [x(3, 1), x(4)]},
    "atleast_1d": {"tensors": [x(3)]},
    "atleast_2d": {"tensors": [x(3)]},
    "atleast_3d": {"tensors": [x(3)]},
    "block_diag": {"tensors": [x(3, 2), x(2, 4)]},
    "cartesian_prod": {"tensors": [x(3), x(4)]},
    "cdist": {"x1": x(3, 4), "x2": x(5, 4)},
    "tensordot": {"a": x(3, 4), "b": x(4, 5), "dims": 1},
    "unique": {
        "input": REPEATED,
        "sorted": True,
        "return_inverse": False,
        "return_counts": False,
        "dim": None,
    },
    "unique_consecutive": {"input": REPEATED, "return_inverse": False, "return_counts": False, "dim": None},
    "stft": {"input": x(64), "n_fft": 16, "window": x(16), "return_complex": True},
    "unravel_index": {"indices": c(4), "shape": [3, 4]},
}
METHODS: dict[str, Sample] = {
    "norm": {"self": x(3, 4)},
    "split": {"self": x(4, 3), "split_size": 2},
    "unique": {"self": REPEATED},
    "unique_consecutive": {"self": REPEATED},
    "unflatten": {"self": x(2, 6), "dim": 1, "sizes": (2, 3)},
    "stft": {"self": x(64), "n_fft": 16, "window": x(16), "return_complex": True},
}
VARIADIC = {"meshgrid", "broadcast_tensors", "split"}
"""Functions whose tuple is as long as their input."""
PRODUCTS = {1: "ii->i", 2: "ij,jk->ik", 3: "ij,jk,kl->il"}
"""Equations for einsum by number of operands: each operand has a row of its own name."""
PROPERTIES = ("T", "mT", "H", "mH", "real")
DIFFERENTIABLE_CASTS = ("float", "double", "half", "bfloat16", "cpu", "cuda", "xpu", "mtia", "ipu")
CUTTING_CASTS = ("int", "long", "short", "bool", "byte", "char")
