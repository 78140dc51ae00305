"""The model that a distilled dataset is for. Checks which rows fit into its context."""

from .examples import fitting
from .language_model import create_model
from .rows import Row


class Student:
    """Tokenizes like `train` with the same model. Raises FatalError for an unknown model."""

    def __init__(self, name: str) -> None:
        self._model = create_model(name, weights=False)

    def can_read(self, instruction: str, response: str) -> bool:
        return bool(fitting(self._model, [Row(instruction, response)]))
