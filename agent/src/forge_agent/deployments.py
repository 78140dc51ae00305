"""Deploys, restores and stops the models of a slot, which is a worker with its own GPUs."""

import logging
import socket
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from .config import AgentConfig
from .container import deployment_container_name, remove_container
from .deployment import Deployment
from .handler import Outcome, read_outcome
from .job_report import Reports
from .lease import Lease
from .log_file import LogFile
from .masking import Mask
from .output_storage import Storage
from .remove_tree import remove_tree
from .slot_user import RunAs
from .supervisor_client import Ending

logger = logging.getLogger(__name__)


class Deployments:
    """All deployed models of one slot."""

    def __init__(
        self,
        config: AgentConfig,
        folder: Path,
        env: Mapping[str, str],
        mask: Mask,
        run_as: RunAs = RunAs(),  # noqa: B008 - immutable
    ) -> None:
        self._config = config
        self._folder = folder
        self._mask = mask
        self._env = env
        self._run_as = run_as
        # If the slot has its own user, this ends the servers that a killed agent left running.
        # `restore` starts them again.
        run_as.end_processes()
        run_as.prepare(folder)
        self._lock = threading.Lock()
        self._served: dict[str, Deployment] = {}
        # `stop` holds this lock while a deployment stops. A new job that deploys the same id waits
        # for the lock in `stop_previous`. So the job creates its folder only after `stop` has
        # removed the old folder.
        self._ending = threading.Lock()
        # Read the earlier agent's deployments before any slot of this agent deploys a model, so
        # that their ports are reserved.
        self._earlier = [self._deployment(each) for each in sorted(self._folder.glob("*/"))]

    def restore(self) -> None:
        """Restarts an earlier agent's deployments. Removes those whose job has not completed."""
        for deployment in self._earlier:
            if not deployment.is_kept:
                # A killed agent may have left the container running.
                remove_container(deployment_container_name(deployment.id))
                remove_tree(deployment.folder)
                continue
            logger.info("restoring deployment %s", deployment.id)
            with self._lock:
                self._served[deployment.id] = deployment
            deployment.watch()

    def _deployment(self, folder: Path) -> Deployment:
        return Deployment(self._config, folder, self._env, self._mask, self._run_as)

    def folder_for(self, lease: Lease) -> Path:
        """The folder for a deploy job's inputs, kept for the lifetime of the deployment."""
        return self._folder / str(lease.job["output_ids"]["deployment_id"])

    def deploy(
        self,
        lease: Lease,
        inputs: Mapping[str, Path],
        log: LogFile,
        storage: Storage,
        git_commit: str | None,
    ) -> Outcome:
        """Starts the server of a deploy job. Returns when it is healthy."""
        deployment = self._deployment(self.folder_for(lease))
        host = self._config.deploy_host or _host_towards(self._config.api_url)
        folder = deployment.run_folder
        deployment.job_log = log
        with self._lock:
            self._served[deployment.id] = deployment
        try:
            deployment.prepare(host, self._config.deploy_ports, lease.job.get("serving_token"))
            remove_tree(folder.path)  # an earlier try may have left files and links
            folder.describe(lease, inputs, None, {}, git_commit)
            deployment.start()
            deployment.wait_until_healthy(lease)
            log.note(f"served at {deployment.url}")
            outcome = read_outcome(folder, Ending(0, None, None), "", Reports(folder.progress_file))
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
        return Outcome({**outcome.result, **result}, outcome.metrics)

    def stop_previous(self, lease: Lease) -> None:
        """Stops the earlier deployment with the same id, which a deploy job replaces."""
        self.stop(self.folder_for(lease).name)

    def discard(self, lease: Lease) -> None:
        """Removes the files of a failed deploy job."""
        remove_tree(self.folder_for(lease))

    def stop(self, deployment_id: str) -> None:
        """Stops a deployment and removes its files. Idempotent."""
        with self._ending:
            with self._lock:
                deployment = self._served.pop(deployment_id, None)
            if deployment:
                deployment.stop()
                remove_tree(deployment.folder)
                logger.info("deployment %s stopped", deployment_id)

    def describe(self) -> list[dict[str, Any]]:
        with self._lock:
            served = list(self._served.values())
        return [
            {"deployment_id": each.id, "healthy": each.is_healthy}
            for each in served
            if each.is_kept
        ]

    def close(self) -> None:
        """Stops all servers. Keeps their files: the next agent restores them."""
        with self._lock:
            served = list(self._served.values())
        threads = [threading.Thread(target=each.stop) for each in served]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def _host_towards(api_url: str) -> str:
    """This machine's own address on the route to the control plane. Model servers listen on it."""
    parts = urlsplit(api_url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    family, kind, protocol, _, address = socket.getaddrinfo(
        parts.hostname, port, type=socket.SOCK_DGRAM
    )[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.connect(address)  # connecting a datagram socket sends nothing
        return str(probe.getsockname()[0])
