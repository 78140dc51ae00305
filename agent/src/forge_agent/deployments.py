"""The deployed models of a slot: new ones, restored ones, and their end."""

import logging
import random
import socket
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from .config import AgentConfig
from .deployment import Deployment
from .handler import Outcome, read_outcome
from .handler_failed import HandlerFailed
from .job_report import Reports
from .lease import Lease
from .leashed import Ending
from .log_file import LogFile
from .masking import Mask
from .remove_tree import remove_tree
from .slot_user import RunAs
from .storage import Storage

logger = logging.getLogger(__name__)


class Deployments:
    """All deployed models of one slot."""

    def __init__(
        self,
        config: AgentConfig,
        folder: Path,
        env: Mapping[str, str],
        mask: Mask,
        run_as: RunAs = RunAs(),  # noqa: B008 - it can't change
    ) -> None:
        self._config = config
        self._folder = folder
        self._mask = mask
        self._env = env
        self._run_as = run_as
        # Models of an agent that was killed; those of this one start later.
        run_as.end_processes()
        run_as.prepare(folder)
        self._lock = threading.Lock()
        self._served: dict[str, Deployment] = {}
        # Held while one is ended: its folder must be gone before it is deployed anew.
        self._ending = threading.Lock()

    def restore(self) -> None:
        """Serves again what was served before the agent ended."""
        for folder in sorted(self._folder.glob("*/")):
            deployment = self._deployment(folder)
            if not deployment.is_kept:
                remove_tree(folder)
                continue
            logger.info("deployment %s is restored", deployment.id)
            with self._lock:
                self._served[deployment.id] = deployment
            deployment.watch()

    def _deployment(self, folder: Path) -> Deployment:
        return Deployment(self._config, folder, self._env, self._mask, self._run_as)

    def folder_for(self, lease: Lease) -> Path:
        """Where a deploy job's inputs lie: they are needed as long as it is served."""
        return self._folder / str(lease.job["output_ids"]["deployment_id"])

    def deploy(
        self,
        lease: Lease,
        inputs: Mapping[str, Path],
        log: LogFile,
        storage: Storage,
        git_commit: str | None,
    ) -> Outcome:
        """Starts the server of a deploy job, and returns when it is healthy."""
        deployment = self._deployment(self.folder_for(lease))
        host = self._config.deploy_host or _host_towards(self._config.api_url)
        port = _free_port(host, self._config.deploy_ports)
        deployment.prepare(host, port, lease.job.get("serving_token"))
        folder = deployment.run_folder
        remove_tree(folder.path)  # an earlier try's, perhaps with its links
        folder.describe(lease, inputs, None, {}, git_commit)
        deployment.job_log = log
        with self._lock:
            self._served[deployment.id] = deployment
        try:
            deployment.start()
            deployment.wait_until_healthy(lease)
            log.say(f"served at {deployment.url}")
            told = read_outcome(folder, Ending(0, None, None), "", Reports(folder.progress_file))
            folder.upload(storage, log)
        except BaseException:
            with self._lock:
                if self._served.get(deployment.id) is deployment:
                    del self._served[deployment.id]
            deployment.stop()
            raise
        deployment.job_log = None
        deployment.keep()
        deployment.watch()
        result = {"deployment_id": deployment.id, "inference_url": deployment.url}
        return Outcome({**told.result, **result}, told.metrics)

    def make_way(self, lease: Lease) -> None:
        """Ends what is served under the id of a deploy job, which takes its place."""
        self.stop(self.folder_for(lease).name)

    def discard(self, lease: Lease) -> None:
        """Frees what a deploy job that came to nothing has left."""
        remove_tree(self.folder_for(lease))

    def stop(self, deployment_id: str) -> None:
        """Ends it for good."""
        with self._ending:
            with self._lock:
                deployment = self._served.pop(deployment_id, None)
            if deployment:
                deployment.stop()
                remove_tree(deployment.folder)
                logger.info("deployment %s is stopped", deployment_id)

    def describe(self) -> list[dict[str, Any]]:
        with self._lock:
            served = list(self._served.values())
        return [
            {"deployment_id": each.id, "healthy": each.is_healthy}
            for each in served
            if each.is_kept
        ]

    def close(self) -> None:
        """Ends the servers; the next agent serves them again."""
        with self._lock:
            served = list(self._served.values())
        threads = [threading.Thread(target=each.stop) for each in served]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def _host_towards(api_url: str) -> str:
    """This machine's address on the way to the control plane: where that reaches us."""
    parts = urlsplit(api_url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    family, kind, protocol, _, address = socket.getaddrinfo(
        parts.hostname, port, type=socket.SOCK_DGRAM
    )[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.connect(address)  # a datagram socket: nothing is sent
        return str(probe.getsockname()[0])


def _free_port(host: str, ports: tuple[int, int]) -> int:
    first, last = ports
    candidates = list(range(first, last + 1))
    random.shuffle(candidates)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for port in candidates:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                continue
            return port
    raise HandlerFailed(f"no port from {first} to {last} is free", transient=True)
