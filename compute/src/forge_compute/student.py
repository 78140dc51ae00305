"""The model that a distillation is for: a row that it can't read is of no use to it."""

from .examples import fitting
from .language_model import create_model
from .rows import Row


class Student:
    """Reads as `train` does with the same model; FatalError for one that `train` would not find."""

    def __init__(self, name: str) -> None:
        self._model = create_model(name, weights=False)

    def can_read(self, instruction: str, response: str) -> bool:
        return bool(fitting(self._model, [Row(instruction, response)]))
