"""One deployed model: starts its server, checks its health and restarts it."""

import contextlib
import json
import logging
import logging.handlers
import threading
import time
from collections.abc import Mapping
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import httpx2

from .config import AgentConfig, HandlerConfig
from .container import deployment_container_name, remove_container
from .declared_types import DEPLOYMENT_TYPE
from .handler import read_outcome, start_handler, wait_for_handler
from .handler_failed import HandlerFailed
from .handler_folder import HandlerFolder
from .job_files import move_file
from .job_report import Reports
from .job_types import handler_for
from .lease import Lease
from .log_file import LogFile
from .masking import Mask
from .ports import keep_port, release_ports, reserve_port
from .private_file import open_private
from .slot_user import RunAs
from .supervisor_client import SupervisedProcess

logger = logging.getLogger(__name__)

_HEALTH_INTERVAL_S = 5.0
_MAX_FAILED_CHECKS = 3
"""The server is restarted after this many failed health checks in a row."""
_MAX_BACKOFF_S = 60.0
_LOG_BYTES = 10 * 1024 * 1024
_LINE_BYTES = 64 * 1024


class _PrivateLog(logging.handlers.RotatingFileHandler):
    """A log that only the agent's user can read.

    The model servers of a slot share one user. If that user could read the log, each server could
    read the logs of the slot's other servers.
    """

    def _open(self) -> TextIOWrapper:
        return open(self.baseFilename, "a", opener=open_private)


class Deployment:
    """One deployed model. Its folder has all data that a restart needs."""

    def __init__(
        self,
        config: AgentConfig,
        folder: Path,
        env: Mapping[str, str],
        mask: Mask,
        run_as: RunAs = RunAs(),  # noqa: B008 - immutable
    ) -> None:
        self.folder = folder
        self.id = folder.name
        self.is_healthy = False
        self.job_log: LogFile | None = None
        self._config = config
        self._env = env
        self._mask = mask
        self._run_as = run_as
        # Ignore proxy variables: the server is on this machine.
        self._client = httpx2.Client(timeout=_HEALTH_INTERVAL_S, trust_env=False)
        self._stopping = threading.Event()
        self._process: SupervisedProcess | None = None
        self._pump: threading.Thread | None = None
        self._thread: threading.Thread | None = None
        self._spec_file = folder / "deployment.json"
        self._spec = self._read_spec()
        if self.is_kept:
            keep_port(self.id, int(self._spec["port"]))
        self._adopt_job_file()

    @property
    def _handler(self) -> HandlerConfig:
        return handler_for(self._config, DEPLOYMENT_TYPE)

    @property
    def _container(self) -> str:
        return deployment_container_name(self.id)

    @property
    def run_folder(self) -> HandlerFolder:
        return HandlerFolder(self.folder / "run")

    def _adopt_job_file(self) -> None:
        """Moves job.json out of the folder that the model server can write to.

        Earlier versions of the agent wrote it there.
        """
        folder = self.run_folder
        if not folder.job_file.exists():
            with contextlib.suppress(OSError):
                move_file(folder.path, "job.json", folder.job_file)

    @property
    def url(self) -> str:
        return f"http://{_bracketed(self._spec['host'])}:{self._spec['port']}/v1"

    @property
    def is_kept(self) -> bool:
        """Whether the agent restores the model after a restart: only if its job has completed."""
        return bool(self._spec.get("kept"))

    def prepare(self, host: str, ports: tuple[int, int], token: str | None) -> None:
        """Stores the server's address and token, so that a restarted server has the same ones.

        `ports`: the first and the last port that the server may get.
        `token`: requests to the server must send it.

        Raises HandlerFailed if no port is free.
        """
        port = reserve_port(self.id, host, ports)
        self._write_spec({"host": host, "port": port, "token": token, "kept": False})

    def keep(self) -> None:
        self._write_spec({**self._spec, "kept": True})

    def start(self) -> None:
        host, port = str(self._spec["host"]), int(self._spec["port"])
        is_contained = bool(self._handler.image)
        env = {
            **self._env,
            # The runtime forwards the host's port to the container's own address, so the server
            # must listen on all addresses of the container.
            "FORGE_HOST": "0.0.0.0" if is_contained else host,
            "FORGE_PORT": str(port),
            "FORGE_DEPLOYMENT_ID": self.id,
        }
        if self._spec.get("token"):
            env["FORGE_DEPLOYMENT_TOKEN"] = str(self._spec["token"])
        if is_contained:
            remove_container(self._container)  # a killed agent may have left it running
        self._run_as.prepare(self.folder)
        process = start_handler(
            self._handler,
            self.run_folder,
            env,
            self._container,
            self._run_as.user_for(self._handler),
            (host, port),
        )
        self._process = process
        self._pump = threading.Thread(target=self._read_output, args=[process], daemon=True)
        self._pump.start()

    def wait_until_healthy(self, lease: Lease | None = None) -> None:
        """Waits until the server is healthy.

        Raises HandlerFailed if the server ends or times out. Raises JobStopped if the lease stops.
        """
        process = self._require_process()
        deadline = time.monotonic() + self._config.deploy_start_timeout_s
        while not self.check_health():
            if not process.is_alive:
                last = self.job_log.last_line if self.job_log else ""
                ending = wait_for_handler(self._handler, process)
                read_outcome(self.run_folder, ending, last, Reports(Path("/dev/null")))
                raise HandlerFailed("the server ended before it was healthy", transient=False)
            if self._stopping.is_set():
                raise HandlerFailed("the server was stopped before it was healthy", transient=True)
            if time.monotonic() > deadline:
                limit_s = self._config.deploy_start_timeout_s
                raise HandlerFailed(f"the server was not healthy in {limit_s:g} s", transient=True)
            if lease:
                lease.sleep(0.2)
            else:
                self._stopping.wait(0.5)

    def check_health(self) -> bool:
        try:
            answer = self._client.get(f"{self.url.removesuffix('/v1')}/health")
            self.is_healthy = answer.is_success
        except httpx2.HTTPError:
            self.is_healthy = False
        return self.is_healthy

    def watch(self) -> None:
        """Starts a thread that restarts the server whenever it ends or stops responding."""
        self._thread = threading.Thread(target=self._supervise, name=self.id, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the server and its monitoring. Keeps the folder, which a restore needs."""
        self._stopping.set()
        if self._process:
            self._process.stop(self._config.stop_grace_s)
            self._process.wait()
        if self._thread:
            self._thread.join()
            if self._process:  # the thread may have started another process in the meantime
                self._process.stop(grace_s=0)
        if self._handler.image:
            remove_container(self._container)
        release_ports(self.id)
        self._client.close()
        self.is_healthy = False

    def _supervise(self) -> None:
        backoff_s = 1.0
        while not self._stopping.is_set():
            try:
                if self._process is None or not self._process.is_alive:
                    self.start()
                    self.wait_until_healthy()
                    logger.info("deployment %s is served at %s", self.id, self.url)
                    backoff_s = 1.0
                self._watch_health()
            except (HandlerFailed, OSError) as error:
                if not self._stopping.is_set():
                    logger.warning("deployment %s: %s", self.id, error)
            if self._stopping.is_set():
                return
            if self._process:
                self._process.stop(self._config.stop_grace_s)
                self._process.wait()
            logger.warning("deployment %s restarts in %.0f s", self.id, backoff_s)
            self._stopping.wait(backoff_s)
            backoff_s = min(2 * backoff_s, _MAX_BACKOFF_S)

    def _watch_health(self) -> None:
        """Checks the server's health until it must be restarted, or the deployment is stopping."""
        process, failures = self._require_process(), 0
        while (
            process.is_alive
            and failures < _MAX_FAILED_CHECKS
            and not self._stopping.wait(_HEALTH_INTERVAL_S)
        ):
            failures = 0 if self.check_health() else failures + 1
        if process.is_alive and failures:
            logger.warning("deployment %s does not respond", self.id)

    def _read_output(self, process: SupervisedProcess) -> None:
        handler = _PrivateLog(self.folder / "server.log", maxBytes=_LOG_BYTES, backupCount=1)
        for line in iter(lambda: process.output.readline(_LINE_BYTES), b""):
            if self.job_log:
                self.job_log.write(line)
            text = self._mask.apply(line).decode(errors="replace").rstrip()
            handler.emit(logging.makeLogRecord({"msg": text}))
        handler.close()

    def _require_process(self) -> SupervisedProcess:
        if self._process is None:
            raise HandlerFailed("the server was not started", transient=True)
        return self._process

    def _read_spec(self) -> dict[str, Any]:
        """Returns what the last `_write_spec` stored. Empty for a new deployment."""
        try:
            content: dict[str, Any] = json.loads(self._spec_file.read_text())
        except FileNotFoundError:
            return {}
        return content

    def _write_spec(self, spec: dict[str, Any]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        partial = self._spec_file.with_suffix(".part")
        with open(partial, "w", opener=open_private) as file:
            json.dump(spec, file)
        partial.replace(self._spec_file)
        self._spec = spec


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
