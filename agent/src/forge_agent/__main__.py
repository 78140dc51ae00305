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
"""EX_NOPERM: starting it again is of no use, and its service does not."""


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
        print(f"forge-agent: the key is refused: {error}", file=sys.stderr)
        return EXIT_KEY_REFUSED
    except Refused as error:
        print(f"forge-agent: the control plane refuses this worker: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="forge-agent",
        description="Runs Forge jobs on this machine. Without a command: registers and works.",
        epilog="settings, by variable and (name in the TOML file):\n" + describe_settings(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=__version__)
    _add_flags(parser, default=None)
    commands = parser.add_subparsers(dest="command", metavar="command")
    run = commands.add_parser("run", help="register and work (the default)")
    status = commands.add_parser("status", help="tell what the agents of this machine do")
    status.add_argument("--json", action="store_true")
    status.add_argument("--state-dir", type=Path, default=None)
    service = commands.add_parser("install", help="make it a service of systemd")
    for command in (run, service):
        _add_flags(command, default=argparse.SUPPRESS)
    service.add_argument("--name", default=Service.name, help="of the service (%(default)s)")
    service.add_argument(
        "--user", default=Service.user, help="account that it runs as; made where there is none"
    )
    service.add_argument(
        "--env-file", type=Path, help="its variables, which only root need read (/etc/<name>.env)"
    )
    service.add_argument(
        "--state-dir", type=Path, help="folder of its state, and its home (/var/lib/<name>)"
    )
    service.add_argument("--dry-run", action="store_true", help="show the unit, change nothing")
    return parser


def _add_flags(parser: argparse.ArgumentParser, default: str | None) -> None:
    """The same before and after the command's name."""
    parser.add_argument(
        "--config", type=Path, default=default, help="a TOML file; also FORGE_AGENT_CONFIG"
    )
    parser.add_argument("--slots", default=default, help='jobs at a time: "per-gpu", or how many')


if __name__ == "__main__":
    sys.exit(main())
