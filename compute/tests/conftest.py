from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def handler_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets the paths of the progress and result files."""
    monkeypatch.setenv("FORGE_PROGRESS", str(tmp_path / "progress"))
    monkeypatch.setenv("FORGE_RESULT_FILE", str(tmp_path / "result.json"))
