"""The loss of a batch, on the response tokens only: the instruction is not learned."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from .examples import Example
from .language_model import LanguageModel, device_of

_IGNORED = -100
_BATCH = 64


@dataclass(frozen=True)
class BatchLoss:
    total: Tensor
    """Summed over the responses' tokens, in nats."""
    tokens: int


def loss_of(model: LanguageModel, examples: list[Example]) -> BatchLoss:
    length = max(len(example.prompt) + len(example.response) for example in examples) - 1
    ids = torch.full((len(examples), length), model.end)
    targets = torch.full((len(examples), length), _IGNORED)
    for row, example in enumerate(examples):
        sequence = torch.tensor(example.prompt + example.response)
        ids[row, : len(sequence) - 1] = sequence[:-1]
        first = len(example.prompt) - 1
        targets[row, first : len(sequence) - 1] = sequence[first + 1 :]
    device = device_of(model)
    # Right padding: causal attention never sees it.
    logits, _ = model.logits(ids.to(device))
    targets = targets.to(device)
    chosen = targets != _IGNORED
    total = functional.cross_entropy(logits[chosen].float(), targets[chosen], reduction="sum")
    return BatchLoss(total, sum(len(example.response) for example in examples))


def mean_loss(model: LanguageModel, examples: list[Example]) -> float | None:
    """Loss in nats per response token. None without examples."""
    total, tokens = 0.0, 0
    model.module.eval()
    with torch.inference_mode():
        for start in range(0, len(examples), _BATCH):
            loss = loss_of(model, examples[start : start + _BATCH])
            total += loss.total.item()
            tokens += loss.tokens
    return total / tokens if tokens else None


def perplexity(loss: float | None) -> float | None:
    """The perplexity at a mean loss. None without a loss, or if it exceeds a float's range."""
    return round(math.exp(loss), 4) if loss is not None and loss < 700 else None
