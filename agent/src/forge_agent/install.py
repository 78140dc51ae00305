"""`forge-agent install`: installs the agent as a systemd service."""

import os
import pwd
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from .chown_tree import chown_tree
from .service_unit import Service, render_unit
from .settings import ConfigError

_UNITS = Path("/etc/systemd/system")


def install(flags: Mapping[str, object], service: Service, *, dry_run: bool) -> int:
    """Writes the unit and starts it. Raises ConfigError if the machine or account can't run it."""
    unit = render_unit(flags, service)
    if dry_run:
        print(unit, end="")
        return 0
    if not Path("/run/systemd/system").is_dir():
        raise ConfigError("install: this machine does not run systemd")
    if os.geteuid() != 0:
        raise ConfigError("install: only root can write to /etc/systemd/system; use sudo")
    os.umask(0o022)  # the account must be able to enter the new folders
    account = _account_of(service)
    _require_reachable(account)
    if service.state_path:
        _give_state(service.state_dir, account)
    if not service.env_file.exists():
        service.env_file.touch(mode=0o600)
        service.env_file.write_text("SERVICE_API_URL=\nSERVICE_API_KEY=\n")
        print(f"fill in {service.env_file}, then run: systemctl restart {service.name}")
    (_UNITS / service.unit).write_text(unit)
    _call("systemctl", "daemon-reload")
    _call("systemctl", "enable", "--now", service.unit)
    print(f"installed the service {service.name}; see: systemctl status {service.name}")
    return 0


def _account_of(service: Service) -> pwd.struct_passwd:
    """The account that the service runs as. Creates one without a shell if it does not exist."""
    try:
        return pwd.getpwnam(service.user)
    except KeyError:
        flags = ("--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin")
        _call("useradd", *flags, "--home-dir", str(service.state_dir), service.user)
        return pwd.getpwnam(service.user)


def _require_reachable(account: pwd.struct_passwd) -> None:
    """Raises ConfigError if the account can't run this Python, or import the agent."""
    try:
        subprocess.run(
            [sys.executable, "-c", "import forge_agent"],
            user=account.pw_uid,
            group=account.pw_gid,
            extra_groups=[],
            env={},
            cwd="/",
            capture_output=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        raise ConfigError(
            f"install: {account.pw_name} can't run the agent with {sys.executable}; "
            "install the agent where every user can read it, such as /opt"
        ) from None


def _give_state(folder: Path, account: pwd.struct_passwd) -> None:
    """Makes the account the owner of the state folder, and of each agent's state in it.

    An agent that ran as another account may have written this state. Raises ConfigError if the
    folder belongs to another account, is not empty and has no agent's state: the folder may serve
    another purpose.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    workers = [path.parent for path in folder.glob("*/slot-0")]
    is_own = folder.stat().st_uid == account.pw_uid
    if not is_own and not workers and any(folder.iterdir()):
        raise ConfigError(f"install: {folder} has files that are not an agent's state")
    os.chown(folder, account.pw_uid, account.pw_gid)
    for worker in workers:
        if worker.stat().st_uid != account.pw_uid:
            chown_tree(worker, account.pw_uid, account.pw_gid)


def _call(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ConfigError(f"install: {shlex.join(command)}: {done.stderr.strip()}")
