"""The agent's systemd unit. Machines that Forge sets up over SSH use the same unit."""

import grp
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .settings import ConfigError
from .unit_value import account, argument, pattern, program, word

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_GPU_GROUPS = ("video", "render")

# Creates /run/forge-agents, where agents that run as root lock their ranges of user ids
# (user_range.py).
_ROOT_FOLDER = """\
RuntimeDirectory=forge-agents
RuntimeDirectoryMode=0700
RuntimeDirectoryPreserve=yes
"""

# An agent that runs as root needs these capabilities to run jobs as separate users, read the jobs'
# files and end the jobs' processes.
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
SupplementaryGroups={groups}
{state}
{root_folder}Restart=always
RestartSec=5
# 77: API key refused. 2: invalid configuration. A restart fixes neither.
RestartPreventExitStatus=77 2
# SIGTERM drains: the running job finishes first. A second signal (`systemctl kill`) stops it.
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


@dataclass(frozen=True)
class Service:
    """The service's name, its account and the paths of its files.

    Raises ConfigError for a name that is invalid for a unit.
    """

    name: str = "forge-agent"
    user: str = "forge-agent"
    env_path: Path | None = None
    """Default: `/etc/<name>.env`."""
    state_path: Path | None = None
    """The agent's state folder and HOME. Default: `/var/lib/<name>`, created by systemd."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ConfigError(f"install: {self.name!r} can't be the name of a service")

    @property
    def unit(self) -> str:
        """The unit's name. Without the suffix, a service named `a.timer` would become a timer."""
        return f"{self.name}.service"

    @property
    def env_file(self) -> Path:
        return self.env_path.resolve() if self.env_path else Path(f"/etc/{self.name}.env")

    @property
    def state_dir(self) -> Path:
        return self.state_path.resolve() if self.state_path else Path(f"/var/lib/{self.name}")


def render_unit(flags: Mapping[str, object], service: Service) -> str:
    """`flags`: command-line flags for the service's command. Skips flags that are None."""
    words = ["-m", "forge_agent"]
    for name, value in flags.items():
        if value is not None:
            words += [name, str(value.resolve() if isinstance(value, Path) else value)]
    return _UNIT.format(
        command=" ".join([program(sys.executable), *map(argument, words)]),
        env_file=pattern(str(service.env_file)),
        user=account(service.user),
        groups=" ".join(_groups_of_gpus()),
        state=_state_settings(service),
        root_folder=_ROOT_FOLDER if service.user == "root" else "",
        capabilities=_ROOT_CAPABILITIES if service.user == "root" else "",
    )


def _state_settings(service: Service) -> str:
    if service.state_path is None:
        return f"StateDirectory={service.name}\nStateDirectoryMode=0700"
    folder = service.state_dir
    variables = f"{word(f'FORGE_AGENT_STATE={folder}')} {word(f'HOME={folder}')}"
    return f"Environment={variables}\nReadWritePaths={word(str(folder))}"


def _groups_of_gpus() -> list[str]:
    """The groups for GPU access that exist on this machine.

    systemd does not start a service with an unknown group.
    """
    known = {group.gr_name for group in grp.getgrall()}
    return [name for name in _GPU_GROUPS if name in known]
