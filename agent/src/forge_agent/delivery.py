"""Delivers a result: until the control plane has it, or says that it does not want it."""

import logging
import time
from collections.abc import Callable
from typing import Any

from .control_plane import ControlPlane, ControlPlaneAway, NotRegistered, Refused

logger = logging.getLogger(__name__)

_MAX_BACKOFF_S = 30.0
_FORBIDDEN = 403
_REFUSED = "the control plane refused the worker's report; the agent's log says why"


def deliver(
    control_plane: ControlPlane, result: dict[str, Any], register: Callable[[], object]
) -> bool:
    """Whether it was taken as it is, however long that took. Raises Refused for the key's sake.

    register: called when the control plane does not know this worker any more.
    """
    backoff_s, sent = 0.5, result
    while True:
        try:
            control_plane.job_result(sent)
            logger.info("job %s: %s", sent["job_id"], sent["status"])
            return sent is result
        except ControlPlaneAway as error:
            logger.warning("result not delivered yet: %s", error)
            time.sleep(backoff_s)
            backoff_s = min(2 * backoff_s, _MAX_BACKOFF_S)
        except NotRegistered:
            register()
        except Refused as error:
            logger.error("result of job %s refused: %s", sent["job_id"], error)
            if error.status == _FORBIDDEN:
                raise  # another key may deliver it, after the next start
            if error.status not in (400, 413) or sent is not result:
                return False
            # The job must not hang on a result that the control plane can't take.
            logger.error("the job is reported as failed for it")
            sent = {**result, "status": "failed", "error": _REFUSED, "metrics": {}}
