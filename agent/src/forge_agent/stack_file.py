"""The file by which a local stack tells where it is."""

import json
from collections.abc import Mapping
from pathlib import Path


def read_stack_file(env: Mapping[str, str]) -> dict[str, str]:
    """The texts in FORGE_HOME/stack.json; empty where no stack runs."""
    path = Path(env.get("FORGE_HOME", ".forge")) / "stack.json"
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return {key: value for key, value in content.items() if isinstance(value, str)}
