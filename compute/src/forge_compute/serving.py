"""One model, many askers: requests queue, and each is written to its end in turn."""

import queue
import threading
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch

from .decoding import sample
from .language_model import LanguageModel

QUEUE_LENGTH = 32


class Busy(Exception):
    """More requests wait already than the queue holds."""


@dataclass(frozen=True)
class Finish:
    reason: str
    """`stop` (the model's own end, or a stop text), `length`, or `error`."""
    completion_tokens: int


@dataclass
class Request:
    prompt: list[int]
    max_tokens: int
    temperature: float
    stop: list[str]
    seed: int | None = None
    _pieces: "queue.Queue[str | Finish]" = field(default_factory=queue.Queue)
    _abandoned: threading.Event = field(default_factory=threading.Event)

    def pieces(self) -> Iterator[str | Finish]:
        """The text as it is written; last a Finish."""
        while True:
            piece = self._pieces.get()
            yield piece
            if isinstance(piece, Finish):
                return

    def abandon(self) -> None:
        """Nobody reads on: the model need not write on."""
        self._abandoned.set()

    @property
    def is_abandoned(self) -> bool:
        return self._abandoned.is_set()

    def put(self, piece: str | Finish) -> None:
        if piece:  # a stop text may leave nothing before it
            self._pieces.put(piece)


class ModelQueue:
    """Owns the model; only its thread touches it, so a slow reader holds nobody up."""

    def __init__(self, model: LanguageModel, length: int = QUEUE_LENGTH) -> None:
        self._model = model
        self._requests: queue.Queue[Request] = queue.Queue(length)
        threading.Thread(target=self._run, name="model", daemon=True).start()

    def submit(self, request: Request) -> None:
        """Raises Busy."""
        try:
            self._requests.put_nowait(request)
        except queue.Full as error:
            raise Busy from error

    def _run(self) -> None:
        while True:
            request = self._requests.get()
            try:
                self._write(request)
            except Exception:  # one request's failure is not the next one's
                traceback.print_exc()
                request.put(Finish("error", 0))

    def _write(self, request: Request) -> None:
        if request.seed is not None:
            torch.manual_seed(request.seed)
        tokens: list[int] = []
        sent = 0
        reason = "length"
        for (token,) in sample(
            self._model, [request.prompt], request.max_tokens, request.temperature
        ):
            if request.is_abandoned:
                break
            if token == self._model.end:
                reason = "stop"
                break
            tokens.append(token)
            text = self._model.decode(tokens)
            cut = _first_stop(text, request.stop)
            if cut is not None:
                request.put(text[sent:cut])
                request.put(Finish("stop", len(tokens)))
                return
            settled = _settled(text, request.stop)
            if settled > sent:
                request.put(text[sent:settled])
                sent = settled
        request.put(self._model.decode(tokens)[sent:])
        request.put(Finish(reason, len(tokens)))


def _first_stop(text: str, stops: list[str]) -> int | None:
    return min((place for stop in stops if (place := text.find(stop)) >= 0), default=None)


def _settled(text: str, stops: list[str]) -> int:
    """How much of the text no later token can change: neither half a character nor half a stop."""
    end = len(text.rstrip("\ufffd"))
    for stop in stops:
        for length in range(min(len(stop) - 1, end), 0, -1):
            if text[:end].endswith(stop[:length]):
                end -= length
                break
    return end
