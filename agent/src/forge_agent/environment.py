"""The variables that a handler gets."""

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
    # What systemd gives a service to speak to it and to read its credentials.
    "CREDENTIALS_DIRECTORY",
    "NOTIFY_SOCKET",
)
_OWN = "FORGE_"
"""Settings of the agent, and of a server that was started from the same shell: among them are the
database's address and the folder with the stack's keys."""
_NOT_OWN = ("FORGE_MODELS_DIR",)


def agent_variables(env: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What a handler without a container gets of the agent's environment.

    All but the agent's own settings and keys; a container gets nothing of it (docs/agent.md).
    """
    return {
        name: value
        for name, value in env.items()
        if name not in _SECRETS and (not name.startswith(_OWN) or name in _NOT_OWN)
    }


def job_variables(folder: HandlerFolder) -> dict[str, str]:
    """Where everything of the job is."""
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
