"""What a number is good for, by where torch takes it: the names of torch's own parameters."""

from __future__ import annotations

from typing import Literal

Role = Literal[
    "width", "vocabulary", "count", "heads", "kernel", "one", "zero", "share", "small", "flag", "size",
    "axis", "string", "path",
]  # fmt: skip
OF_TORCH: dict[str, Role] = {
    **dict.fromkeys(
        ("in_features", "out_features", "in_channels", "out_channels", "num_features", "num_channels",
         "embed_dim", "embedding_dim", "hidden_size", "input_size", "d_model", "dim_feedforward",
         "normalized_shape", "in1_features", "in2_features", "kdim", "vdim", "num_parameters"),
        "width",
    ),
    **dict.fromkeys(("num_embeddings", "num_classes"), "vocabulary"),
    **dict.fromkeys(("num_layers", "num_encoder_layers", "num_decoder_layers", "repeats"), "count"),
    **dict.fromkeys(("num_heads", "nhead", "num_groups"), "heads"),
    **dict.fromkeys(("kernel_size",), "kernel"),
    **dict.fromkeys(("stride", "dilation", "groups", "scale_factor", "upscale_factor"), "one"),
    **dict.fromkeys(("padding", "padding_idx", "output_padding"), "zero"),
    **dict.fromkeys(("p", "dropout", "momentum", "negative_slope", "alpha"), "share"),
    **dict.fromkeys(("label_smoothing", "betas", "rho"), "share"),
    **dict.fromkeys(("eps", "lr", "weight_decay", "std"), "small"),
    **dict.fromkeys(
        ("bias", "inplace", "affine", "bidirectional", "batch_first", "align_corners", "elementwise_affine",
         "track_running_stats", "keepdim", "requires_grad", "norm_first"),
        "flag",
    ),
    **dict.fromkeys(("output_size", "size"), "size"),
    **dict.fromkeys(("dim", "axis", "start_dim", "end_dim"), "axis"),
}  # fmt: skip
INDICES = frozenset(("index", "indices", "target_index"))
MASKS = frozenset(("mask", "condition", "attn_mask", "key_padding_mask"))
LABELLED = frozenset(("cross_entropy", "nll_loss", "CrossEntropyLoss", "NLLLoss", "multi_margin_loss"))
"""Losses whose target is the number of a class."""
SHARES = frozenset(("binary_cross_entropy", "BCELoss"))
"""Losses of what is between 0 and 1."""
