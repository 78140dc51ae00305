from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def handler_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where handlers write progress and result."""
    monkeypatch.setenv("FORGE_PROGRESS", str(tmp_path / "progress"))
    monkeypatch.setenv("FORGE_RESULT_FILE", str(tmp_path / "result.json"))
