"""The environment variables of a handler."""

import json
import os
from collections.abc import Mapping

from .handler_folder import HandlerFolder

_SECRETS = (
    "SERVICE_API_KEY",
    "S3_ACCESS_KEY_ID",
    "S3_SECRET_ACCESS_KEY",
    "SPACES_KEY",
    "SPACES_SECRET",
    # systemd's variables for notifications and credentials.
    "CREDENTIALS_DIRECTORY",
    "NOTIFY_SOCKET",
)
_PRIVATE_PREFIX = "FORGE_"
"""Prefix of the settings of the agent, and of a forge-server started from the same shell. These
settings include the database's URL and the folder with the stack's keys."""
_PUBLIC = ("FORGE_MODELS_DIR",)


def agent_variables(env: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The part of the agent's environment that a handler without a container inherits.

    Leaves out the agent's own settings and keys. A container inherits nothing (docs/agent.md).
    """
    return {
        name: value
        for name, value in env.items()
        if name not in _SECRETS and (not name.startswith(_PRIVATE_PREFIX) or name in _PUBLIC)
    }


def job_variables(folder: HandlerFolder) -> dict[str, str]:
    """The variables with the paths of the job's files and folders."""
    inputs: dict[str, str] = json.loads(folder.job_file.read_text())["inputs"]
    return {
        "TMPDIR": str(folder.temporary),
        "FORGE_JOB_FILE": str(folder.job_file),
        "FORGE_RESULT_FILE": str(folder.result_file),
        "FORGE_OUTPUT_DIR": str(folder.output),
        "FORGE_CHECKPOINT_DIR": str(folder.checkpoints),
        "FORGE_PROGRESS": str(folder.progress_file),
        **{f"FORGE_INPUT_{name.upper()}": path for name, path in inputs.items()},
    }
