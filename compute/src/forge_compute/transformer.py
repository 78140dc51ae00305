"""The architecture of the builtin models: a small decoder-only transformer."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

Cache = list[tuple[Tensor, Tensor]]
"""Keys and values of all previous positions, one pair per layer."""


@dataclass(frozen=True)
class Shape:
    vocabulary: int
    context: int
    """Maximum length of a sequence, in tokens."""
    width: int
    layers: int
    heads: int


class Transformer(nn.Module):
    """Token ids (batch, length) to logits (batch, length, vocabulary)."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.tokens = nn.Embedding(shape.vocabulary, shape.width)
        self.positions = nn.Embedding(shape.context, shape.width)
        self.blocks = nn.ModuleList(Block(shape.width, shape.heads) for _ in range(shape.layers))
        self.norm = nn.LayerNorm(shape.width)
        # The standard deviation depends on the width: the usual value of 0.02 slows down learning
        # in narrow models.
        std = 0.5 / math.sqrt(shape.width)
        self.apply(lambda module: _initialise(module, std))

    def forward(self, ids: Tensor, cache: Cache | None = None) -> Tensor:
        """With a cache, `ids` continue the cached sequence and are added to it."""
        start = cache[0][0].shape[2] if cache else 0
        positions = torch.arange(start, start + ids.shape[1], device=ids.device)
        hidden = self.tokens(ids) + self.positions(positions)
        for layer, block in enumerate(self.blocks):
            hidden = block(hidden, cache, layer)
        return functional.linear(self.norm(hidden), self.tokens.weight)


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(width)
        self.attention_in = nn.Linear(width, 3 * width)
        self.attention_out = nn.Linear(width, width)
        self.mlp_norm = nn.LayerNorm(width)
        self.mlp_in = nn.Linear(width, 4 * width)
        self.mlp_out = nn.Linear(4 * width, width)

    def forward(self, hidden: Tensor, cache: Cache | None, layer: int) -> Tensor:
        hidden = hidden + self._attend(self.attention_norm(hidden), cache, layer)
        inner: Tensor = self.mlp_out(functional.gelu(self.mlp_in(self.mlp_norm(hidden))))
        return hidden + inner

    def _attend(self, hidden: Tensor, cache: Cache | None, layer: int) -> Tensor:
        batch, length, width = hidden.shape
        parts = self.attention_in(hidden).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        if cache is not None:
            if layer < len(cache):
                key = torch.cat((cache[layer][0], key), dim=2)
                value = torch.cat((cache[layer][1], value), dim=2)
                cache[layer] = (key, value)
            else:
                cache.append((key, value))
        # A call that continues a cache has a single token. It may attend to all previous positions,
        # so it needs no causal mask.
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=length > 1)
        joined: Tensor = self.attention_out(mixed.transpose(1, 2).reshape(batch, length, width))
        return joined


def _initialise(module: nn.Module, std: float) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=std)
    if isinstance(module, nn.Linear):
        nn.init.zeros_(module.bias)
