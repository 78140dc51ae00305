"""Runs the commands that the control plane sends in responses to polls and heartbeats."""

import logging
import threading
from collections.abc import Callable
from typing import Any

from .deployments import Deployments
from .lease import Lease

logger = logging.getLogger(__name__)


def run_command(
    command: dict[str, Any],
    lease: Lease | None,
    deployments: Deployments,
    drain: Callable[[], None],
) -> None:
    """Runs a command. Ignores unknown commands.

    Does not block: a `stop_deployment` command runs in a new thread.
    """
    kind = command.get("type")
    if kind == "drain":
        drain()
    elif kind == "stop_deployment":
        deployment_id = str(command.get("deployment_id"))
        # If the current job deploys `deployment_id`, the command is about an earlier deployment
        # with the same id. Ignore it, because the job stops the earlier deployment itself.
        if not _is_deploying(lease, deployment_id):
            threading.Thread(target=deployments.stop, args=[deployment_id], daemon=True).start()
    elif kind in ("cancel_job", "job_lost"):
        # Compare the attempt: a late response may be about an earlier attempt at the same job.
        attempt = command.get("attempt", lease.attempt if lease else None)
        if lease and (command.get("job_id"), attempt) == (lease.job_id, lease.attempt):
            logger.warning("%s: stopping job %s", kind, lease.job_id)
            lease.stop("cancelled" if kind == "cancel_job" else "lost")


def _is_deploying(lease: Lease | None, deployment_id: str) -> bool:
    return bool(lease and lease.job["output_ids"].get("deployment_id") == deployment_id)
