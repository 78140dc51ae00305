"""`python -m forge_compute <job_type>`: runs the job that FORGE_JOB_FILE describes."""

import importlib
import sys
import traceback
from collections.abc import Callable
from typing import Any

from .declared_types import JOB_TYPES
from .failures import EXIT_FATAL, EXIT_TRANSIENT, FatalError, is_transient, message_of
from .job import Job, write_result

Handler = Callable[[Job], dict[str, Any]]


def main() -> int:
    # The agent uploads the log while the handler runs, so send each line at once.
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    try:
        handler = load_handler(sys.argv[1] if len(sys.argv) > 1 else "")
        job = Job.from_env()
        content = handler(job)
        if job.git_commit:
            content["result"].setdefault("git_commit", job.git_commit)
        write_result(content)
        return 0
    except Exception as error:
        return _fail(error)


def load_handler(job_type: str) -> Handler:
    """Returns the job type's handler: the function `<job_type>` of the module `<job_type>`.

    Raises FatalError for an unknown job type, and if PyTorch is needed but not installed.
    """
    if job_type not in JOB_TYPES:
        raise FatalError(f"unknown job type {job_type!r}; use one of {', '.join(JOB_TYPES)}")
    try:
        module = importlib.import_module(f"{__package__}.{job_type}")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise FatalError(f"{job_type} needs PyTorch: pip install forge-compute[train]") from error
    handler: Handler = getattr(module, job_type)
    return handler


def _fail(error: Exception) -> int:
    message = message_of(error)
    write_result({"error": message})
    if is_transient(error):
        print(f"transient: {message}")
        return EXIT_TRANSIENT
    if not isinstance(error, FatalError):
        traceback.print_exc(file=sys.stdout)
    print(f"fatal: {message}")
    return EXIT_FATAL


if __name__ == "__main__":
    sys.exit(main())
