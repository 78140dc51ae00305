"""The systemd service: its unit, its account's permissions and its state folder."""

import grp
import os
import pwd
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from slot_user_support import needs_root, open_path

from forge_agent import __main__, install
from forge_agent.service_unit import Service, render_unit
from forge_agent.settings import ConfigError

__all__ = ["open_path"]

NOBODY = pwd.getpwnam("nobody")


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with the groups root and video, but not render."""
    found = [SimpleNamespace(gr_name=name) for name in ("root", "video")]
    monkeypatch.setattr(grp, "getgrall", lambda: found)


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd-analyze")
@pytest.mark.parametrize("state", [None, Path("/opt/forge-worker/w/state")])
def test_systemd_accepts_the_unit(tmp_path: Path, state: Path | None) -> None:
    unit = tmp_path / "forge-agent.service"
    flags = {"--config": tmp_path / "agent config.toml", "--slots": "per-gpu"}
    unit.write_text(render_unit(flags, Service(user="root", state_path=state)))
    command = ["systemd-analyze", "verify", "--man=no", str(unit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert 'agent config.toml" --slots per-gpu\n' in unit.read_text()


def test_values_are_escaped_for_systemd() -> None:
    """Tests quotes, backslashes, specifiers (%) and variables ($). See systemd.syntax(7)."""
    service = Service(state_path=Path('/srv/100% "mine"'), env_path=Path("/etc/my agent%.env"))
    unit = render_unit({"--config": Path("/etc/$HOME\\a b.toml"), "--slots": "per-gpu"}, service)
    folder = '/srv/100%% \\"mine\\"'
    assert f'\nEnvironment="FORGE_AGENT_STATE={folder}" "HOME={folder}"\n' in unit
    assert f'\nReadWritePaths="{folder}"\n' in unit
    assert "\nEnvironmentFile=-/etc/my agent%%.env\n" in unit
    assert ' -m forge_agent --config "/etc/$$HOME\\\\a b.toml" --slots per-gpu\n' in unit


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd-analyze")
def test_systemd_reads_back_the_original_values(tmp_path: Path) -> None:
    """Reads the debug output of systemd-analyze.

    The path of the environment file ends with a backslash. The backslash must not join its line
    with the next line, `User=`.
    """
    odd = '100% "a"\\x $A ${B} [1]*?'
    service = Service("w", "jobs", Path(f"/etc/{odd}\\"), Path(f"/srv/{odd}"))
    flags = {"--config": Path(f"/etc/{odd}"), "--one": ";", "--two": "'q' #"}
    unit = tmp_path / "w.service"
    unit.write_text(render_unit(flags, service))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)],
        env={**os.environ, "SYSTEMD_LOG_LEVEL": "debug"},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line.strip() for line in (done.stdout + done.stderr).splitlines()]
    assert f"Environment: FORGE_AGENT_STATE=/srv/{odd}" in lines
    assert f"Environment: HOME=/srv/{odd}" in lines
    assert f"ReadWritePaths: /srv/{odd}" in lines
    # This value is a glob pattern, in which a backslash escapes the next character.
    (line,) = (line for line in lines if line.startswith("EnvironmentFile: -"))
    pattern = line.removeprefix("EnvironmentFile: -")
    assert re.sub(r"\\(.)", r"\1", pattern) == f"/etc/{odd}\\"
    assert not re.search(r"(?<!\\)[*?\[]", pattern)


@pytest.mark.parametrize(
    ("flags", "service"),
    [
        ({"--config": Path("/etc/a\nExecStartPre=evil")}, Service()),
        ({"--config": Path(os.fsdecode(b"/etc/\xff"))}, Service()),
        ({}, Service(env_path=Path("/etc/blank at the end "))),
        ({}, Service(user="jobs\nExecStartPre=evil")),
        ({}, Service(user="a b")),
    ],
)
def test_refuses_values_that_a_unit_cannot_represent(
    flags: dict[str, object], service: Service
) -> None:
    with pytest.raises(ConfigError, match="can't be written to a unit file"):
        render_unit(flags, service)


def test_a_program_with_a_dollar_in_its_path_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """systemd uses the path in the unit file twice: as the file to execute, and as argv[0].

    It expands variables only in argv[0]. So `$` gives a wrong argv[0], and the escaped `$$` gives a
    wrong file.
    """
    monkeypatch.setattr(sys, "executable", "/opt/$HOME/bin/python")
    with pytest.raises(ConfigError, match="can't be written to a unit file"):
        render_unit({}, Service())


def test_only_root_gets_the_capabilities_for_slot_users() -> None:
    assert "\nCapabilityBoundingSet=CAP_SETUID CAP_SETGID " in render_unit({}, Service(user="root"))
    assert "\nRuntimeDirectory=forge-agents\n" in render_unit({}, Service(user="root"))
    assert "\nCapabilityBoundingSet=\n" in render_unit({}, Service())
    assert "RuntimeDirectory" not in render_unit({}, Service())


@pytest.mark.usefixtures("groups")
def test_the_unit_has_only_existing_gpu_groups() -> None:
    assert "\nSupplementaryGroups=video\n" in render_unit({}, Service())


@pytest.mark.usefixtures("groups")
def test_a_service_with_another_name_differs_only_in_its_files(tmp_path: Path) -> None:
    own = Service("forge-agent-w", env_path=tmp_path / "env", state_path=tmp_path / "state")
    usual, other = render_unit({}, Service()).splitlines(), render_unit({}, own).splitlines()
    assert set(usual) - set(other) == {
        "EnvironmentFile=-/etc/forge-agent.env",
        "StateDirectory=forge-agent",
        "StateDirectoryMode=0700",
    }
    assert set(other) - set(usual) == {
        f"EnvironmentFile=-{tmp_path}/env",
        f"Environment=FORGE_AGENT_STATE={tmp_path}/state HOME={tmp_path}/state",
        f"ReadWritePaths={tmp_path}/state",
    }
    with pytest.raises(ConfigError, match="can't be the name of a service"):
        Service("../cron")


def test_a_dry_run_shows_the_unit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--name", "forge-agent-w", "--user", "jobs", "--dry-run"]
    monkeypatch.setattr(sys, "argv", ["forge-agent", "install", *flags])
    assert __main__.main() == 0
    assert capsys.readouterr().out == render_unit({}, Service("forge-agent-w", "jobs"))


@needs_root
def test_an_account_that_cannot_run_the_agent_is_refused(
    open_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = open_path / "python"
    monkeypatch.setattr(sys, "executable", str(program))
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    install._require_reachable(NOBODY)
    program.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(ConfigError, match="nobody can't run the agent with"):
        install._require_reachable(NOBODY)
    program.chmod(0o700)
    with pytest.raises(ConfigError, match="nobody can't run the agent with"):
        install._require_reachable(NOBODY)


@needs_root
def test_the_account_gets_the_state_of_an_earlier_agent(tmp_path: Path) -> None:
    """The targets of hard and symbolic links keep their owner: they may be root's files."""
    (tmp_path / "key").touch()
    state = tmp_path / "state"
    (state / "w" / "slot-0").mkdir(parents=True)
    (state / "w" / "slot-0" / "unsent-result.json").touch()
    os.link(tmp_path / "key", state / "w" / "hard")
    (state / "w" / "soft").symlink_to(tmp_path / "key")
    (state / "other").mkdir()
    install._give_state(state, NOBODY)
    paths = [state, *state.rglob("*")]
    given = {path.name for path in paths if path.lstat().st_uid == NOBODY.pw_uid}
    assert given == {"state", "w", "slot-0", "unsent-result.json", "soft"}
    assert state.stat().st_gid == NOBODY.pw_gid
    assert (tmp_path / "key").stat().st_uid == 0


@needs_root
def test_a_folder_with_other_files_is_refused_as_state_folder(tmp_path: Path) -> None:
    install._give_state(tmp_path / "new", NOBODY)
    assert (tmp_path / "new").stat().st_uid == NOBODY.pw_uid
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "rows").touch()
    with pytest.raises(ConfigError, match="has files that are not an agent's state"):
        install._give_state(tmp_path / "data", NOBODY)
    assert (tmp_path / "data").stat().st_uid == 0
