"""`forge-agent status`: shows the agents of this machine."""

import json
import os
import time
from pathlib import Path
from typing import Any

from .config import SERVICE_STATE_DIR, default_state_dir
from .state import read_statuses

_EXIT_NONE_RUNNING = 3
"""The same exit code as `systemctl status`."""


def show_status(state_dir: Path | None, *, as_json: bool) -> int:
    """Prints the status. Returns 0 if an agent is running, else 3."""
    own = Path(os.environ.get("FORGE_AGENT_STATE") or default_state_dir(os.environ))
    # By default, also show the agent that runs as this machine's service.
    folders = [state_dir] if state_dir else [own, SERVICE_STATE_DIR]
    statuses = [status for folder in dict.fromkeys(folders) for status in read_statuses(folder)]
    if as_json:
        print(json.dumps(statuses, indent=2))
    elif not statuses:
        print(f"no agent has run with its state in {' or '.join(map(str, folders))}")
    else:
        for status in statuses:
            print("\n".join(_describe(status)))
    return 0 if any(status["running"] for status in statuses) else _EXIT_NONE_RUNNING


def _describe(status: dict[str, Any]) -> list[str]:
    if not status["running"]:
        return [f"not running: {', '.join(slot['worker_id'] for slot in status['slots'])}"]
    head = f"running as process {status['pid']} since {_age(status['started_at'])}"
    return [f"{head}, {status['api_url']}", *(_describe_slot(slot) for slot in status["slots"])]


def _describe_slot(slot: dict[str, Any]) -> str:
    parts = [f"  {slot['worker_id']} ({slot['gpu']}): {slot['state']} since {_age(slot['since'])}"]
    if slot["job_id"]:
        parts.append(f"{slot['job_type']} {slot['job_id']}")
    if slot.get("job_user"):
        parts.append(f"jobs run as user {slot['job_user']}")
    if slot["reason"]:
        parts.append(slot["reason"])
    parts += [
        f"serves {each['deployment_id']}{'' if each['healthy'] else ' (not healthy)'}"
        for each in slot["deployments"]
    ]
    return ", ".join(parts)


def _age(since: float) -> str:
    seconds = max(0, int(time.time() - since))
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"
