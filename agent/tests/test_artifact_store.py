"""The local artifact store."""

from pathlib import Path

import pytest

from forge_agent.artifact_store import ArtifactStore, NoSuchInput


def test_upload_copies_everything_below_the_uri(tmp_path: Path) -> None:
    source = tmp_path / "out"
    (source / "tokenizer").mkdir(parents=True)
    (source / "model.pt").write_bytes(b"m")
    (source / "tokenizer" / "vocab").write_bytes(b"v")
    store = ArtifactStore(tmp_path / "store")
    store.upload(source, "forge://artifacts/checkpoints/c1/")
    root = tmp_path / "store" / "checkpoints" / "c1"
    found = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
    assert found == ["model.pt", "tokenizer/vocab"]
    assert store.fetch("forge://artifacts/checkpoints/c1/model.pt").read_bytes() == b"m"
    assert store.fetch(f"file://{root}/model.pt").read_bytes() == b"m"


@pytest.mark.parametrize(
    "uri",
    [
        "s3://bucket/key",
        "forge://elsewhere/key",
        "forge://artifacts/../secret",
        "forge://artifacts/%2e%2e/secret",
        "file:///etc/passwd",
        "forge://artifacts/missing",
    ],
)
def test_refuses(tmp_path: Path, uri: str) -> None:
    (tmp_path / "secret").write_text("x")
    with pytest.raises(NoSuchInput):
        ArtifactStore(tmp_path / "store").fetch(uri)
