"""The training loop: deterministic batches, a learning rate schedule and periodic checkpoints."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.optim import AdamW, Optimizer

from .examples import Example
from .failures import FatalError
from .language_model import LanguageModel
from .loss import loss_of
from .training_state import TrainingState, save_state

OPTIMIZER = "AdamW"
_WEIGHT_DECAY = 0.1
_CLIP = 1.0
_WARMUP_STEPS = 50
_MIN_LR_SHARE = 0.05
"""The learning rate at the last step, as a share of the maximum."""
_CURVE_POINTS = 500
_LOG_EVERY_S = 5.0
_REPORT_EVERY_S = 0.5


@dataclass(frozen=True)
class Plan:
    steps: int
    batch_size: int
    lr: float
    seed: int
    checkpoint_every_s: float
    checkpoint_dir: Path


def make_optimizer(model: LanguageModel, lr: float) -> Optimizer:
    return AdamW(model.module.parameters(), lr=lr, betas=(0.9, 0.98), weight_decay=_WEIGHT_DECAY)


def train_model(
    model: LanguageModel,
    optimizer: Optimizer,
    examples: list[Example],
    plan: Plan,
    state: TrainingState,
    report: Callable[[TrainingState], None],
) -> None:
    """Runs the steps from `state` to the plan's last one, and updates `state`.

    Deterministic: the same seed and examples give the same steps, even after an interruption.
    `report` is called at most twice per second.
    """
    model.module.train()
    batches = _Batches(examples, plan)
    every = max(1, plan.steps // _CURVE_POINTS)
    clock = _Clock(state)
    log, reports = _Interval(_LOG_EVERY_S), _Interval(_REPORT_EVERY_S)
    states = _Interval(plan.checkpoint_every_s)
    while state.step < plan.steps:
        batch = batches.at(state.step)
        for group in optimizer.param_groups:
            group["lr"] = plan.lr * _lr_share(state.step, plan.steps)
        loss = loss_of(model, batch)
        mean = loss.total / loss.tokens
        optimizer.zero_grad()
        torch.autograd.backward(mean)
        torch.nn.utils.clip_grad_norm_(model.module.parameters(), _CLIP)
        optimizer.step()
        state.step += 1
        clock.tick(sum(len(example.prompt) + len(example.response) for example in batch))
        if state.step % every == 0 or state.step == plan.steps:
            _require_finite(mean.item(), state.step)
            state.curve.append([state.step, round(mean.item(), 6)])
        if log.is_due() or state.step == plan.steps:
            speed = f"{clock.tokens_per_s:.0f} tokens/s"
            print(f"step {state.step} of {plan.steps}, loss {mean.item():.4f}, {speed}")
        if reports.is_due():
            report(state)
        if states.is_due() and state.step < plan.steps:
            save_state(state, model, optimizer, plan.checkpoint_dir)
            print(f"checkpoint after step {state.step}")


class _Batches:
    """The batches of each epoch. Their order depends only on seed and epoch."""

    def __init__(self, examples: list[Example], plan: Plan) -> None:
        self._examples = examples
        self._size = plan.batch_size
        self._seed = plan.seed
        self._epoch = -1
        self._order: list[int] = []

    def at(self, step: int) -> list[Example]:
        epoch, batch = divmod(step, steps_per_epoch(len(self._examples), self._size))
        if epoch != self._epoch:
            generator = torch.Generator().manual_seed(self._seed * 100_003 + epoch)
            self._order = torch.randperm(len(self._examples), generator=generator).tolist()
            self._epoch = epoch
        start = batch * self._size
        return [self._examples[index] for index in self._order[start : start + self._size]]


class _Clock:
    """Adds the time of each step to the state."""

    def __init__(self, state: TrainingState) -> None:
        self._state = state
        self._last = self._start = time.monotonic()
        self._last_cpu = time.thread_time()
        self._tokens = 0

    def tick(self, tokens: int) -> None:
        now, cpu = time.monotonic(), time.thread_time()
        self._state.seconds += now - self._last
        self._state.cpu_seconds += cpu - self._last_cpu
        self._last, self._last_cpu = now, cpu
        self._tokens += tokens

    @property
    def tokens_per_s(self) -> float:
        return self._tokens / max(self._last - self._start, 1e-9)


class _Interval:
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._last = time.monotonic()

    def is_due(self) -> bool:
        now = time.monotonic()
        if now - self._last < self._seconds:
            return False
        self._last = now
        return True


def steps_per_epoch(examples: int, batch_size: int) -> int:
    return math.ceil(examples / batch_size)


def _require_finite(loss: float, step: int) -> None:
    if not math.isfinite(loss):
        raise FatalError(f"the loss is {loss} after step {step}; try a smaller lr")


def _lr_share(step: int, steps: int) -> float:
    """Learning rate schedule: linear warm-up, then cosine decay."""
    warmup = min(1.0, (step + 1) / min(_WARMUP_STEPS, max(1, steps // 10)))
    cosine = 0.5 * (1 + math.cos(math.pi * step / steps))
    return warmup * (_MIN_LR_SHARE + (1 - _MIN_LR_SHARE) * cosine)
