"""python -m forge_compute <job_type>: runs the job that FORGE_JOB_FILE describes."""

import sys
from collections.abc import Callable
from typing import Any

from .audit import audit
from .job import FatalError, Job, write_result

EXIT_FATAL = 1
EXIT_TRANSIENT = 75

HANDLERS: dict[str, Callable[[Job], dict[str, Any]]] = {"audit": audit}


def main() -> int:
    job_type = sys.argv[1]
    handler = HANDLERS.get(job_type)
    try:
        if handler is None:
            raise FatalError(f"this worker has no handler for {job_type} jobs")
        write_result(handler(Job.from_env()))
        return 0
    except FatalError as error:
        write_result({"error": str(error)})
        print(f"fatal: {error}")
        return EXIT_FATAL
    except (MemoryError, OSError) as error:
        write_result({"error": f"{type(error).__name__}: {error}"})
        print(f"transient: {error!r}")
        return EXIT_TRANSIENT


if __name__ == "__main__":
    sys.exit(main())
