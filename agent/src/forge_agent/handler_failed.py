class HandlerFailed(Exception):
    """The handler failed. `transient`: whether a retry may succeed."""

    def __init__(self, message: str, *, transient: bool) -> None:
        super().__init__(message)
        self.transient = transient
