"""How an agent decides whether separate users can run its handlers."""

import logging
import os
import subprocess
from pathlib import Path

import pytest
from slot_user_support import FIRST_UID, needs_root, open_path

from forge_agent import isolation as module
from forge_agent.config import AgentConfig, HandlerConfig
from forge_agent.isolation import find_isolation
from forge_agent.settings import ConfigError
from forge_agent.slot_user import RunAs, SlotUser, gpu_groups

__all__ = ["open_path"]

pytestmark = needs_root


def test_auto_uses_separate_users_if_they_can_run_the_handlers(open_path: Path) -> None:
    (open_path / "slot-0").mkdir(mode=0o700)
    handlers = {"audit": HandlerConfig(("/bin/sh",))}
    config = AgentConfig("u", "k", handlers=handlers, allow_job_types=("audit",))
    assert find_isolation(config, [open_path, open_path / "slot-0"]).of_jobs(0).bare
    assert (open_path / "slot-0").stat().st_mode & 0o777 == 0o711


def test_processes_of_a_killed_agent_do_not_make_jobs_run_as_root(
    open_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job's process may outlive a killed agent and kill the next agent's test commands.

    The process and the test commands run as the same user. So the next agent must end the process
    before it runs the commands.
    """
    uid = FIRST_UID + 20
    monkeypatch.setattr(module, "claim_user_range", lambda _: uid)
    handlers = {"audit": HandlerConfig(("/bin/sh",))}
    config = AgentConfig("u", "k", handlers=handlers, allow_job_types=("audit",))
    attack = ["/bin/sh", "-c", "echo up; while :; do kill -KILL -1; done 2>/dev/null"]
    left = subprocess.Popen(attack, user=uid, group=uid, extra_groups=[], stdout=subprocess.PIPE)
    try:
        assert left.stdout
        left.stdout.readline()
        assert find_isolation(config, [open_path]).of_jobs(0).bare == SlotUser(uid, gpu_groups())
    finally:
        left.kill()
        left.communicate()


@pytest.mark.parametrize("closed", ["folder", "program", "script"])
def test_auto_falls_back_with_a_warning_and_true_refuses(
    open_path: Path, caplog: pytest.LogCaptureFixture, closed: str
) -> None:
    hidden = open_path / "hidden"
    hidden.mkdir(mode=0o700)
    for name in ("run", "job.sh"):
        (hidden / name).write_text("#!/bin/sh\n")
        (hidden / name).chmod(0o755)
    command = {
        "folder": ("/bin/sh",),
        "program": (str(hidden / "run"),),
        "script": ("/bin/sh", str(hidden / "job.sh")),
    }[closed]
    folder = hidden / "state" if closed == "folder" else open_path / "state"
    folder.mkdir(mode=0o700)
    handlers = {"audit": HandlerConfig(command)}
    config = AgentConfig("u", "k", handlers=handlers, allow_job_types=("audit",))
    with caplog.at_level(logging.WARNING):
        isolation = find_isolation(config, [folder])
    assert isolation.of_jobs(0).bare is None
    assert isolation.of_jobs(0).contained == SlotUser(isolation.first_uid or 0, gpu_groups())
    assert "can read the agent's key" in caplog.text
    assert str(hidden) in caplog.text
    assert folder.stat().st_mode & 0o777 == 0o700
    strict = AgentConfig("u", "k", handlers=handlers, allow_job_types=("audit",), slot_users="true")
    with pytest.raises(ConfigError, match=r"SLOT_USERS is true, but user \d+ can't run jobs"):
        find_isolation(strict, [folder])
    never = AgentConfig("u", "k", handlers=handlers, slot_users="false")
    assert find_isolation(never, [folder]).of_jobs(0) == RunAs()


def test_finds_the_groups_of_gpu_devices(tmp_path: Path) -> None:
    (tmp_path / "dri").mkdir()
    for name, group, mode in (
        ("nvidia0", 0, 0o666),
        ("kfd", 109, 0o660),
        ("dri/renderD128", 109, 0o660),
        ("dri/card0", 44, 0o660),
        ("dri/card1", 45, 0o600),
    ):
        (tmp_path / name).touch()
        os.chown(tmp_path / name, 0, group)
        (tmp_path / name).chmod(mode)
    assert gpu_groups(tmp_path) == (44, 109)
