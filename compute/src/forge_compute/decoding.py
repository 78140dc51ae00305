"""Generates text with a model."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .language_model import LanguageModel, device_of

_BATCH = 256


@dataclass(frozen=True, slots=True)
class Written:
    tokens: list[int]
    """Without the end token."""
    is_finished: bool
    """True if the model ended the text, false if it was cut off."""


def sample(
    model: LanguageModel, prompts: list[list[int]], max_tokens: int, temperature: float = 0.0
) -> Iterator[list[int]]:
    """Continues all prompts at once. Yields a list for each step, with one token per prompt.

    Temperature 0 takes the most likely token. All prompts must have the same length. Does not stop
    at an end token: the caller must stop the iteration.
    """
    ids = torch.tensor(prompts, device=device_of(model))
    cache: Any = None
    for _ in range(min(max_tokens, model.context - ids.shape[1])):
        with torch.inference_mode():
            logits, cache = model.logits(ids, cache, keep=True)
            ids = _choose(logits[:, -1].float(), temperature)
        yield ids[:, 0].tolist()


def write_all(model: LanguageModel, prompts: list[list[int]], max_tokens: int) -> list[Written]:
    """Writes a response to each prompt, always with the most likely next token.

    Batches prompts of equal length.
    """
    model.module.eval()
    by_length: dict[int, list[int]] = defaultdict(list)
    for index, prompt in enumerate(prompts):
        by_length[len(prompt)].append(index)
    written = [Written([], False)] * len(prompts)
    for same in by_length.values():
        for start in range(0, len(same), _BATCH):
            indices = same[start : start + _BATCH]
            group = _write_group(model, [prompts[index] for index in indices], max_tokens)
            for index, text in zip(indices, group, strict=True):
                written[index] = text
    return written


def _write_group(model: LanguageModel, prompts: list[list[int]], max_tokens: int) -> list[Written]:
    texts: list[list[int]] = [[] for _ in prompts]
    open_rows = set(range(len(prompts)))
    for tokens in sample(model, prompts, max_tokens):
        for row in list(open_rows):
            if tokens[row] == model.end:
                open_rows.discard(row)
            else:
                texts[row].append(tokens[row])
        if not open_rows:
            break
    return [Written(text, row not in open_rows) for row, text in enumerate(texts)]


def _choose(logits: Tensor, temperature: float) -> Tensor:
    if temperature == 0:
        return logits.argmax(-1, keepdim=True)
    return torch.multinomial(torch.softmax(logits / temperature, -1), 1)
