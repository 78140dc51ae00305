"""Delivers a result: retries until the control plane accepts or refuses it."""

import logging
import time
from collections.abc import Callable
from typing import Any

from .control_plane import ControlPlane, ControlPlaneUnavailable, NotRegistered, Refused

logger = logging.getLogger(__name__)

_MAX_BACKOFF_S = 30.0
_FORBIDDEN = 403
_REFUSED = "the control plane refused the worker's report; the agent's log says why"


def deliver(
    control_plane: ControlPlane, result: dict[str, Any], register: Callable[[], object]
) -> bool:
    """Sends the result until the control plane accepts or refuses it. Retries without limit.

    If the control plane refuses the result as invalid or too large, reports the job as failed
    instead. Returns True only if the original result was accepted. Raises Refused if the API key is
    refused. `register`: called if the control plane does not know this worker.
    """
    backoff_s, sent = 0.5, result
    while True:
        try:
            control_plane.job_result(sent)
            logger.info("job %s: %s", sent["job_id"], sent["status"])
            return sent is result
        except ControlPlaneUnavailable as error:
            logger.warning("result not delivered yet: %s", error)
            time.sleep(backoff_s)
            backoff_s = min(2 * backoff_s, _MAX_BACKOFF_S)
        except NotRegistered:
            register()
        except Refused as error:
            logger.error("result of job %s refused: %s", sent["job_id"], error)
            if error.status == _FORBIDDEN:
                raise  # after a restart with another key, the result may still be delivered
            if error.status not in (400, 413) or sent is not result:
                return False
            # The control plane would refuse this result again. Report the job as failed, so that
            # it does not wait for a result forever.
            logger.error("job %s: reporting it as failed instead", sent["job_id"])
            sent = {**result, "status": "failed", "error": _REFUSED, "metrics": {}}
