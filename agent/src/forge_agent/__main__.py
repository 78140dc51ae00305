"""The command `forge-agent`."""

import logging
import signal
import sys

from .agent import Agent
from .config import AgentConfig, ConfigError
from .control_plane import Refused


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
    except Refused as error:
        print(f"forge-agent: the control plane refuses this worker: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
