"""The command `forge-agent`."""

import logging
import signal
import sys

from .agent import Agent
from .config import AgentConfig, ConfigError
from .control_plane import KeyRefused, Refused

EXIT_KEY_REFUSED = 77
"""EX_NOPERM: starting it again is of no use, and its service does not."""


def main() -> int:
    logging.basicConfig(
        level=logging.INFO, stream=sys.stdout, format="%(asctime)s %(levelname)s %(message)s"
    )
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    try:
        agent = Agent(AgentConfig.from_env())
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: agent.request_stop())
        agent.run()
    except ConfigError as error:
        print(f"forge-agent: {error}", file=sys.stderr)
        return 2
    except KeyRefused as error:
        print(f"forge-agent: the key is refused: {error}", file=sys.stderr)
        return EXIT_KEY_REFUSED
    except Refused as error:
        print(f"forge-agent: the control plane refuses this worker: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
