"""File names and links that could lead out of the directory: nothing is written outside."""

import os
import random
from pathlib import Path

import pytest
from sdk_support import FakeForge

from forge import Forge, UnsafePathError, paths

HOSTILE_SEGMENTS = ["..", "", ".", "...", ".. ", "C:", "c:x", "..\\..", "\\", "a\\b", "\0", "a\0b"]
HOSTILE_SEGMENTS += ["\n", "\x1b[2J", "\x7f", "\x85", "\ud800", " ", ". ."]
HARMLESS_SEGMENTS = ["a", "b.txt", ".hidden", "..a", "a..", "é", "a b", "%2e%2e", "-", "~", "a:b"]


def hostile_names(count: int) -> list[str]:
    """Paths with one to three hostile segments at random positions among harmless ones."""
    dice = random.Random(20261122)
    names = []
    for _ in range(count):
        segments = [dice.choice(HARMLESS_SEGMENTS) for _ in range(dice.randrange(5))]
        for _ in range(dice.randrange(1, 4)):
            segments.insert(dice.randrange(len(segments) + 1), dice.choice(HOSTILE_SEGMENTS))
        names.append("/".join(segments))
    return names


def written_below(folder: Path) -> list[str]:
    return sorted(map(str, folder.rglob("*")))


def test_refuses_ten_thousand_hostile_names(tmp_path: Path) -> None:
    root = tmp_path / "outer" / "root"
    root.mkdir(parents=True)
    before = written_below(tmp_path)
    for name in hostile_names(10_000):
        for use in (paths.prepare, paths.find):
            with pytest.raises(UnsafePathError):
                use(root, name)
    assert written_below(tmp_path) == before


def test_ten_thousand_random_names_stay_below_the_root(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    dice = random.Random(7)
    accepted = 0
    for _ in range(10_000):
        name = "".join(dice.choices("../ab\\:C\0 é", k=dice.randrange(1, 12)))
        try:
            segments = paths.segments_of(name)
        except UnsafePathError:
            continue
        accepted += 1
        assert os.path.normpath(root / name) == str(root.joinpath(*segments))
        assert os.path.realpath(root / name).startswith(f"{root.resolve()}/")
    assert accepted > 500


def test_a_manifest_with_a_hostile_name_writes_nothing(
    server: FakeForge, client: Forge, tmp_path: Path
) -> None:
    for name in hostile_names(200):
        server.set_files({"fine": b"fine", name: b"evil"})
        with pytest.raises(UnsafePathError):
            client.artifacts.pull("ds_1", tmp_path / "root")
        with pytest.raises(UnsafePathError):
            client.artifacts.verify_local("ds_1", tmp_path)
        with pytest.raises(UnsafePathError):
            client.artifacts.verify("ds_1")
    assert not written_below(tmp_path)
    assert {request.path for request in server.requests} == {"/api/artifacts/ds_1/manifest"}


@pytest.mark.parametrize(
    "names",
    [
        ["a.txt", "A.txt"],
        ["dir/a", "DIR/b"],
        ["stra\u00dfe", "STRASSE"],
        ["\u00e9", "e\u0301"],
        ["a", "a/b"],
        ["a/b", "a"],
        ["manifest.json"],
        ["Manifest.JSON"],
        ["manifest.json/x"],
    ],
)
def test_refuses_names_that_some_file_systems_treat_as_equal(
    server: FakeForge, client: Forge, tmp_path: Path, names: list[str]
) -> None:
    server.set_files({name: b"x" for name in names})
    with pytest.raises(UnsafePathError):
        client.artifacts.pull("ds_1", tmp_path / "root")
    assert not written_below(tmp_path)


def test_refuses_duplicate_files(server: FakeForge, client: Forge, tmp_path: Path) -> None:
    server.set_manifest({**server.manifest, "files": server.manifest["files"] * 2})
    with pytest.raises(UnsafePathError, match="listed twice"):
        client.artifacts.pull("ds_1", tmp_path)


@pytest.mark.parametrize("link", ["deep", "deep/er", "deep/er/b", "manifest.json", "dangling"])
def test_does_not_write_through_links(
    server: FakeForge, client: Forge, tmp_path: Path, link: str
) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    outside.mkdir()
    (outside / "victim").write_text("as it was")
    place = root / ("deep/er/b" if link == "dangling" else link)
    place.parent.mkdir(parents=True)
    is_file = link in ("deep/er/b", "manifest.json")
    place.symlink_to(outside / ("gone" if link == "dangling" else "victim" if is_file else "."))
    with pytest.raises(UnsafePathError, match="symbolic link"):
        client.artifacts.pull("ds_1", root)
    assert written_below(outside) == [str(outside / "victim")]
    assert (outside / "victim").read_text() == "as it was"


def test_ignores_targets_of_links(server: FakeForge, client: Forge, tmp_path: Path) -> None:
    client.artifacts.pull("ds_1", tmp_path / "a")
    (tmp_path / "a" / "deep").rename(tmp_path / "deep")
    (tmp_path / "a" / "deep").symlink_to(tmp_path / "deep")
    found = client.artifacts.verify_local("ds_1", tmp_path / "a")
    outcomes = {check.path: str(check.outcome) for check in found.checks}
    assert outcomes["deep/er/b"] == "missing"
    assert outcomes["deep"] == "extra"
