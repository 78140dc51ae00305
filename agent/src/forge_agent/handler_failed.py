"""How a handler fails."""


class HandlerFailed(Exception):
    """The handler failed; `transient` says whether another try may help."""

    def __init__(self, message: str, *, transient: bool) -> None:
        super().__init__(message)
        self.transient = transient
