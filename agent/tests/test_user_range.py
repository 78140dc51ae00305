"""Agents on one machine: each reserves its own range of Unix user ids."""

import os
from pathlib import Path

from forge_agent.user_range import SIZE, claim_user_range


def test_the_second_agent_gets_the_next_range(tmp_path: Path) -> None:
    assert claim_user_range(61_000, tmp_path) == 61_000
    assert claim_user_range(61_000, tmp_path) == 61_000 + SIZE
    assert claim_user_range(70_000, tmp_path) == 70_000
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


def test_a_link_in_place_of_the_lock_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "users-61000.lock").symlink_to(tmp_path / "elsewhere")
    assert claim_user_range(61_000, tmp_path) == 61_000
    assert not (tmp_path / "elsewhere").exists()


def test_a_range_is_free_again_after_its_agent_has_ended(tmp_path: Path) -> None:
    pid = os.fork()
    if pid == 0:
        claim_user_range(61_000, tmp_path)
        os._exit(0)
    os.waitpid(pid, 0)
    assert claim_user_range(61_000, tmp_path) == 61_000
