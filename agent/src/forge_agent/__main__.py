"""The command `forge-agent`."""

import argparse
import logging
import signal
import sys
import time
from pathlib import Path

from . import __version__
from .agent import Agent
from .config import AgentConfig
from .control_plane import KeyRefused, Refused
from .install import install
from .service_unit import Service
from .settings import ConfigError, describe_settings
from .status import show_status

EXIT_KEY_REFUSED = 77
"""EX_NOPERM: the control plane refuses the API key. The systemd unit does not restart the
agent after this code, because a restart can't help."""


def main() -> int:
    arguments = _parser().parse_args()
    try:
        match arguments.command:
            case "status":
                return show_status(arguments.state_dir, as_json=arguments.json)
            case "install":
                flags = {"--config": arguments.config, "--slots": arguments.slots}
                service = Service(
                    arguments.name, arguments.user, arguments.env_file, arguments.state_dir
                )
                return install(flags, service, dry_run=arguments.dry_run)
            case _:
                return _run(arguments)
    except ConfigError as error:
        print(f"forge-agent: {error}", file=sys.stderr)
        return 2


def _run(arguments: argparse.Namespace) -> int:
    logging.basicConfig(
        level=logging.INFO, stream=sys.stdout, format="%(asctime)s %(levelname)s %(message)s"
    )
    logging.Formatter.converter = time.gmtime
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    try:
        agent = Agent(AgentConfig.load(arguments.config, slots=arguments.slots))
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: agent.request_stop())
        agent.run()
    except KeyRefused as error:
        print(f"forge-agent: the API key is refused: {error}", file=sys.stderr)
        return EXIT_KEY_REFUSED
    except Refused as error:
        print(f"forge-agent: the control plane refuses this worker: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="forge-agent",
        description="Runs Forge jobs on this machine. The default command is `run`.",
        epilog="settings, as VARIABLE (name in the TOML file):\n" + describe_settings(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=__version__)
    _add_flags(parser, default=None)
    commands = parser.add_subparsers(dest="command", metavar="command")
    run = commands.add_parser("run", help="register and run jobs (the default)")
    status = commands.add_parser("status", help="show the agents of this machine")
    status.add_argument("--json", action="store_true")
    status.add_argument("--state-dir", type=Path, default=None)
    service = commands.add_parser("install", help="install the agent as a systemd service")
    for command in (run, service):
        _add_flags(command, default=argparse.SUPPRESS)
    service.add_argument("--name", default=Service.name, help="name of the service (%(default)s)")
    service.add_argument(
        "--user", default=Service.user, help="account to run as; created if it does not exist"
    )
    service.add_argument(
        "--env-file",
        type=Path,
        help="environment file; only root needs to read it (/etc/<name>.env)",
    )
    service.add_argument(
        "--state-dir", type=Path, help="state folder, also its HOME (/var/lib/<name>)"
    )
    service.add_argument("--dry-run", action="store_true", help="show the unit, change nothing")
    return parser


def _add_flags(parser: argparse.ArgumentParser, default: str | None) -> None:
    """Adds the flags that are accepted both before and after the command's name."""
    parser.add_argument(
        "--config", type=Path, default=default, help="a TOML file; also FORGE_AGENT_CONFIG"
    )
    parser.add_argument("--slots", default=default, help='concurrent jobs: "per-gpu" or a number')


if __name__ == "__main__":
    sys.exit(main())
