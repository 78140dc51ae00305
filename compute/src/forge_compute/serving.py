"""Serves one model to many clients: requests wait in a queue and are processed one at a time."""

import contextlib
import queue
import threading
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch

from .decoding import sample
from .language_model import LanguageModel, find_gpu_failure

QUEUE_LENGTH = 32


class Busy(Exception):
    """The queue is full, or the GPU has failed."""


@dataclass(frozen=True)
class Finish:
    reason: str
    """`stop` (the model's end token, or a stop text), `length` or `error`."""
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
        """Yields pieces of the text during generation, then a Finish."""
        while True:
            piece = self._pieces.get()
            yield piece
            if isinstance(piece, Finish):
                return

    def abandon(self) -> None:
        """Stops the generation if it is still running: the client no longer reads the response."""
        self._abandoned.set()

    @property
    def is_abandoned(self) -> bool:
        return self._abandoned.is_set()

    def put(self, piece: str | Finish) -> None:
        if piece:  # the piece before a stop text may be empty
            self._pieces.put(piece)


class ModelQueue:
    """Owns the model, which only the queue's thread uses.

    The thread does not wait for clients, so a client that reads slowly does not block the others.
    """

    def __init__(
        self,
        model: LanguageModel,
        length: int = QUEUE_LENGTH,
        on_gpu_failure: Callable[[str], None] = lambda error: None,
    ) -> None:
        """`on_gpu_failure`: called once, with the error. From then on, `submit` raises Busy."""
        self._model = model
        self._on_gpu_failure = on_gpu_failure
        self._has_ended = False
        self._ending = threading.Lock()
        """Held while a request is added, so that none is added after `_refuse_all`."""
        self._requests: queue.Queue[Request] = queue.Queue(length)
        threading.Thread(target=self._run, name="model", daemon=True).start()

    def submit(self, request: Request) -> None:
        """Queues a request. Raises Busy if the queue is full, or the GPU has failed."""
        with self._ending:
            if self._has_ended:
                raise Busy("the worker's GPU has failed")
            try:
                self._requests.put_nowait(request)
            except queue.Full as error:
                raise Busy("too many waiting requests") from error

    def _run(self) -> None:
        while True:
            request = self._requests.get()
            try:
                self._write(request)
            except Exception:  # a failed request must not affect the next one
                traceback.print_exc()
                request.put(Finish("error", 0))
                if failure := find_gpu_failure(self._model):
                    self._refuse_all()
                    self._on_gpu_failure(failure)
                    return

    def _refuse_all(self) -> None:
        with self._ending:
            self._has_ended = True
        with contextlib.suppress(queue.Empty):
            while True:
                self._requests.get_nowait().put(Finish("error", 0))

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
            final_length = _final_length(text, request.stop)
            if final_length > sent:
                request.put(text[sent:final_length])
                sent = final_length
        request.put(self._model.decode(tokens)[sent:])
        request.put(Finish(reason, len(tokens)))


def _first_stop(text: str, stops: list[str]) -> int | None:
    return min((start for stop in stops if (start := text.find(stop)) >= 0), default=None)


def _final_length(text: str, stops: list[str]) -> int:
    """Returns how many characters can be sent now, because later tokens can't change them.

    Does not count an incomplete character, or the beginning of a stop text, at the text's end.
    """
    end = len(text.rstrip("\ufffd"))
    for stop in stops:
        for length in range(min(len(stop) - 1, end), 0, -1):
            if text[:end].endswith(stop[:length]):
                end -= length
                break
    return end
