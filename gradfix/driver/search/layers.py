"""What layers of torch take: read off those that were built."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from gradfix.driver.search.facts import Facts

_nn: Any = nn
CONVOLUTIONS = _nn.modules.conv._ConvNd
NORMS = _nn.modules.batchnorm._NormBase
POOLS = (
    _nn.modules.pooling._MaxPoolNd, _nn.modules.pooling._AvgPoolNd,
    _nn.modules.pooling._AdaptiveAvgPoolNd, _nn.modules.pooling._AdaptiveMaxPoolNd,
)  # fmt: skip
BATCH, LENGTH = 2, 6
"""How many examples there are at a time, and how long a sequence is."""
THROUGH = (
    nn.Dropout, nn.ReLU, nn.GELU, nn.SiLU, nn.LeakyReLU, nn.Tanh, nn.Sigmoid, nn.ELU, nn.Identity,
    nn.LayerNorm, nn.GroupNorm, NORMS,
)  # fmt: skip
"""Layers whose result has the shape of what they are given."""


def taken(layer: Any, position: int, facts: Facts) -> None:
    """What a layer of torch's says of an argument."""
    if isinstance(layer, nn.Embedding | nn.EmbeddingBag):
        facts.index += 1
        facts.high = min(facts.high or layer.num_embeddings, layer.num_embeddings)
        return
    facts.tensor += 1
    if isinstance(layer, nn.RNNBase) and position == 1:
        count = layer.num_layers * (2 if layer.bidirectional else 1)
        batch = BATCH if layer.batch_first else LENGTH
        facts.hidden = isinstance(layer, nn.LSTM), (count, batch, layer.hidden_size)
        return
    if position == 0 or isinstance(layer, nn.MultiheadAttention | nn.Transformer | nn.TransformerDecoder):
        _sizes(layer, facts)


def _sizes(layer: Any, facts: Facts) -> None:
    if isinstance(layer, nn.Linear):
        facts.takes(layer.in_features, -1)
    elif isinstance(layer, CONVOLUTIONS):
        facts.has(len(layer.kernel_size) + 2)
        facts.takes(layer.in_channels, 1)
    elif isinstance(layer, NORMS):
        facts.takes(layer.num_features, 1)
        facts.has({"BatchNorm1d": 2, "BatchNorm3d": 5, "InstanceNorm1d": 3}.get(type(layer).__name__, 4))
    elif isinstance(layer, nn.GroupNorm):
        facts.takes(layer.num_channels, 1)
    elif isinstance(layer, nn.LayerNorm):
        for at, size in enumerate(reversed(layer.normalized_shape), 1):
            facts.takes(size, -at)
    elif isinstance(layer, nn.RNNBase):
        facts.has(3)
        facts.takes(layer.input_size, -1)
    elif isinstance(layer, nn.RNNCellBase):
        facts.has(2)
        facts.takes(layer.input_size, -1)
    elif isinstance(layer, POOLS):
        facts.has(int(type(layer).__name__[-2]) + 2)
    else:
        _wide(layer, facts)


def _wide(layer: Any, facts: Facts) -> None:
    """Those of a transformer."""
    inner = next((one for one in layer.modules() if isinstance(one, nn.MultiheadAttention)), None)
    if inner is not None and type(layer).__module__.startswith("torch."):
        facts.has(3)
        facts.takes(inner.embed_dim, -1)


def first(module: Any) -> Any:
    """Of a sequence of layers, the first."""
    while isinstance(module, nn.Sequential) and len(module):
        module = module[0]
    return module


def is_torch(thing: Any) -> bool:
    """Whether it is torch's own."""
    name = getattr(thing, "__module__", None) or getattr(type(thing), "__module__", "") or ""
    return name.partition(".")[0] in ("torch", "torchvision", "torch_geometric") or (
        isinstance(thing, type(torch.add)) and getattr(torch, getattr(thing, "__name__", ""), None) is thing
    )
