"""`forge-agent install`: the agent as a service of systemd."""

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from .settings import ConfigError

_UNIT_FILE = Path("/etc/systemd/system/forge-agent.service")
_ENV_FILE = Path("/etc/forge-agent.env")

# Root needs these to run jobs as users of their own, read their files and end their processes.
_ROOT_CAPABILITIES = (
    "CAP_SETUID CAP_SETGID CAP_CHOWN CAP_FOWNER CAP_DAC_OVERRIDE CAP_KILL CAP_SYS_PTRACE"
)

_UNIT = """\
[Unit]
Description=Forge worker agent
Wants=network-online.target
After=network-online.target

[Service]
ExecStart={command}
EnvironmentFile=-{env_file}
User={user}
StateDirectory=forge-agent
StateDirectoryMode=0700
Restart=always
RestartSec=5
# 77: its key is refused, and 2: its configuration is wrong. Neither passes by itself.
RestartPreventExitStatus=77 2
# SIGTERM drains: a job under way may take its time. `systemctl kill` a second time gives it up.
KillMode=mixed
TimeoutStopSec=infinity
OOMPolicy=continue

NoNewPrivileges=yes
CapabilityBoundingSet={capabilities}
AmbientCapabilities=
ProtectSystem=strict
ProtectHome=read-only
PrivateTmp=yes
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
ProtectClock=yes
ProtectHostname=yes
RestrictSUIDSGID=yes
RestrictRealtime=yes
RestrictNamespaces=yes
LockPersonality=yes
SystemCallArchitectures=native
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
UMask=0077

[Install]
WantedBy=multi-user.target
"""


def render_unit(flags: Mapping[str, object], user: str) -> str:
    """`flags`: of the command line, as the service should get them; None for one not given."""
    command = [sys.executable, "-m", "forge_agent"]
    for name, value in flags.items():
        if value is not None:
            command += [name, str(value.resolve() if isinstance(value, Path) else value)]
    capabilities = _ROOT_CAPABILITIES if user == "root" else ""
    return _UNIT.format(
        command=shlex.join(command), env_file=_ENV_FILE, user=user, capabilities=capabilities
    )


def install(flags: Mapping[str, object], user: str, *, dry_run: bool) -> int:
    """Writes the unit and starts it. Raises ConfigError where this machine or account can't."""
    unit = render_unit(flags, user)
    if dry_run:
        print(unit, end="")
        return 0
    if not Path("/run/systemd/system").is_dir():
        raise ConfigError("install: this machine does not run systemd")
    if os.geteuid() != 0:
        raise ConfigError("install: only root may write to /etc/systemd/system; use sudo")
    if subprocess.run(["id", user], capture_output=True, check=False).returncode != 0:
        _call("useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", user)
    if not _ENV_FILE.exists():
        _ENV_FILE.touch(mode=0o600)
        _ENV_FILE.write_text("SERVICE_API_URL=\nSERVICE_API_KEY=\n")
        print(f"fill in {_ENV_FILE}, then: systemctl restart forge-agent")
    _UNIT_FILE.write_text(unit)
    _call("systemctl", "daemon-reload")
    _call("systemctl", "enable", "--now", "forge-agent")
    print("forge-agent is a service; see: systemctl status forge-agent")
    return 0


def _call(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ConfigError(f"install: {shlex.join(command)}: {done.stderr.strip()}")
