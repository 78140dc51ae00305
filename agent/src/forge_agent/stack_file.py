"""Reads the local stack's stack.json, which has its address and keys."""

import json
from collections.abc import Mapping
from pathlib import Path


def read_stack_file(env: Mapping[str, str]) -> dict[str, str]:
    """The string values in FORGE_HOME/stack.json. Empty if no stack runs."""
    path = Path(env.get("FORGE_HOME", ".forge")) / "stack.json"
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return {key: value for key, value in content.items() if isinstance(value, str)}
