"""Decides whether handlers run as separate users on this machine. If not, logs the reason."""

import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from .config import AgentConfig
from .declared_types import JOB_TYPES
from .environment import agent_variables
from .job_types import handler_for, job_types_of, reference_handler
from .settings import ConfigError
from .slot_user import RunAs, SlotUser, gpu_groups
from .supervisor_client import SupervisedProcess
from .user_processes import end_processes_of
from .user_range import claim_user_range

logger = logging.getLogger(__name__)

_TRAVERSE = 0o011
# A shell script that runs as the slot's user. Checks that this user can write to its home, execute
# the handler's program ($1), and read the files in the handler's command (the other arguments).
_PROBE = """
cd "$HOME" && : >probe || exit 1
program=$1; shift
test -x "$program" || { echo "$program can't be run"; exit 1; }
for file; do test -r "$file" || { echo "$file can't be read"; exit 1; }; done
"""


@dataclass(frozen=True)
class Isolation:
    """How handlers run, as decided at the agent's start."""

    first_uid: int | None
    """None if handlers run as the agent's user."""
    is_for_containers_only: bool = False
    groups: tuple[int, ...] = ()

    def of_jobs(self, slot: int) -> RunAs:
        return self._run_as(2 * slot)

    def of_deployments(self, slot: int) -> RunAs:
        """The user of deployed models.

        Differs from the jobs' user, because a model continues to run next to later jobs.
        """
        return self._run_as(2 * slot + 1)

    def _run_as(self, offset: int) -> RunAs:
        if self.first_uid is None:
            return RunAs()
        user = SlotUser(self.first_uid + offset, self.groups)
        return RunAs(None if self.is_for_containers_only else user, user)


def find_isolation(config: AgentConfig, folders: list[Path]) -> Isolation:
    """Decides how handlers run. `folders`: the agent's folders, outermost first.

    If handlers run as separate users, gives these users access to the folders. Raises ConfigError
    if SLOT_USERS is true, but separate users can't run the handlers.
    """
    is_root = os.geteuid() == 0
    if config.slot_users == "false" or (config.slot_users == "auto" and not is_root):
        return Isolation(None)
    base = claim_user_range(config.slot_user_base) if is_root else config.slot_user_base
    user = SlotUser(base or config.slot_user_base, gpu_groups())
    if is_root and base:
        # End the processes that a killed agent's job left. They run as the same user as the test
        # commands below, and could kill them. The agent would then wrongly decide that handlers
        # can't run as separate users, and run them as root.
        end_processes_of(base)
    modes = {folder: folder.stat().st_mode & 0o777 for folder in folders}
    for folder, mode in modes.items():
        folder.chmod(mode | _TRAVERSE)
    no_users = None if is_root else "the agent does not run as root"
    no_users = no_users or (None if base else "no range of user ids is free")
    no_users = no_users or _try(user, folders[-1], [("/bin/sh", "-c", "exit 0")])
    why_not = no_users or _try(user, folders[-1], _probes(config))
    if why_not is None:
        logger.info("handlers run as separate users, with ids from %s", user.uid)
        return Isolation(user.uid, groups=user.groups)
    for folder, mode in modes.items():
        folder.chmod(mode)
    if config.slot_users == "true":
        raise ConfigError(f"SLOT_USERS is true, but user {user.uid} can't run jobs: {why_not}")
    logger.warning(
        "handlers without a container run as root: they can read the agent's key and other jobs' "
        "data. User %s can't run them: %s (docs/agent.md, Isolation)",
        user.uid,
        why_not,
    )
    # Handlers in containers still run as separate users, unless `no_users` gives a reason why that
    # is impossible. They need no access to the agent's folders, because the runtime mounts the
    # job's folders as root.
    return Isolation(None if no_users else user.uid, True, user.groups)


def _try(user: SlotUser, folder: Path, commands: Iterable[tuple[str, ...]]) -> str | None:
    """Runs test commands as the user. Returns why one failed, or None if all succeeded."""
    try:
        with tempfile.TemporaryDirectory(prefix="probe-", dir=folder) as name:
            os.chown(name, user.uid, user.uid)
            for command in dict.fromkeys(commands):
                if failure := _run(command, user, Path(name)):
                    return failure
    except OSError as error:
        return str(error)
    return None


def _probes(config: AgentConfig) -> Iterator[tuple[str, ...]]:
    """Test commands for each handler without a container. Exit code 0: the handler can run."""
    for job_type in job_types_of(config) or JOB_TYPES:
        handler = handler_for(config, job_type)
        if handler.image:
            continue
        program, *words = handler.command
        # Resolve the program as the agent does. The slot's user would skip folders on PATH that it
        # can't read, and might find another program.
        found = shutil.which(program) or program
        files = [word for word in words if Path(word).is_absolute() and Path(word).is_file()]
        yield ("/bin/sh", "-c", _PROBE, "probe", found, *files)
        if handler == reference_handler(job_type):
            yield (sys.executable, "-c", "import forge_compute")


def _run(command: tuple[str, ...], user: SlotUser, folder: Path) -> str | None:
    """Returns None if the command exits with 0, else its last line of output."""
    supervised = SupervisedProcess(
        command, folder, agent_variables() | user.variables(folder), user=user
    )
    with supervised.output as output:
        text = output.read().decode(errors="replace").strip()
    ending = supervised.wait()
    if ending.code == 0:
        return None
    return text.splitlines()[-1] if text else f"{command[0]} ended with {ending}"
