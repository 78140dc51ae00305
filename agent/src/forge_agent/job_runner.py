"""Runs one job on this machine: inputs, handler, local retries, upload and report."""

import logging
import math
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .checkpoint_uploads import CheckpointSender, move_newest_checkpoint
from .config import AgentConfig, HandlerConfig
from .container import container_name, remove_container
from .control_plane import ControlPlane, Refused, StaleAttempt
from .declared_types import DEPLOYMENT_TYPE
from .deployments import Deployments
from .file_transfer import TransferFailed
from .git_commit import commit_of
from .gpu import Gpus
from .handler import Outcome, read_outcome, start_handler, wait_for_handler
from .handler_failed import HandlerFailed
from .handler_folder import HandlerFolder
from .job_inputs import Inputs, NoSuchInput, local_path
from .job_report import Report, Reports
from .job_types import handler_for
from .lease import JobStopped, Lease
from .log_file import LogFile
from .log_sender import LogSender
from .masking import Mask
from .output_storage import Storage, storage_for
from .remove_tree import remove_tree
from .sendable import sendable_text
from .slot_user import RunAs

logger = logging.getLogger(__name__)

_MAX_BACKOFF_S = 10.0
_DEFAULT_LOG_BYTES = 64 * 1024 * 1024
_DEADLINE_SLACK_S = 30.0
"""The agent ends a job this long after its deadline if the control plane has not ended it."""


class JobRunner:
    """Runs the jobs of one slot, one at a time."""

    def __init__(
        self,
        config: AgentConfig,
        control_plane: ControlPlane,
        work: Path,
        gpus: Gpus,
        env: Mapping[str, str],
        deployments: Deployments,
        mask: Mask,
        run_as: RunAs = RunAs(),  # noqa: B008 - immutable
    ) -> None:
        """`env`: additional variables for handlers, such as the slot's GPU."""
        self._config = config
        self._control_plane = control_plane
        self._work = work
        self._gpus = gpus
        self._env = env
        self._deployments = deployments
        self._mask = mask
        self._reports: Reports | None = None
        # End the processes and remove the files that a killed agent left. Its unfinished work can't
        # be continued.
        run_as.end_processes()
        remove_tree(work)
        self._run_as = run_as
        run_as.prepare(work)

    @property
    def report(self) -> Report:
        """The latest report of the running handler."""
        reports = self._reports
        return reports.latest() if reports else Report()

    def run(self, lease: Lease) -> dict[str, Any] | None:
        """Runs a job. Returns the report for the control plane, or None if the job was lost."""
        folder = self._work / f"{lease.job_id}-{lease.attempt}"
        started = time.monotonic()
        self._reports = None
        try:
            # An earlier job may be another tenant's: its processes must not run during this job.
            if fault := self._run_as.end_processes():
                raise OSError(fault)
            self._run_as.prepare(folder)
            report = self._run_logged(lease, folder)
        except Exception as error:
            # A full disk or a bug of the agent: report the job as failed, and keep running.
            logger.exception("job %s failed", lease.job_id)
            report = _failed(f"on the worker: {error}", retryable=True)
        finally:
            self._clean_up(folder)
        if lease.job_type == DEPLOYMENT_TYPE and (report is None or report["status"] == "failed"):
            self._deployments.discard(lease)
        if report is None:
            return None
        metrics = {**self.report.metrics, **report.get("metrics", {})}
        metrics.setdefault("duration_sec", round(time.monotonic() - started, 3))
        hours = (time.monotonic() - started) / 3600 * self._gpus.count
        # Round down: the control plane flags a bill if the reported hours exceed the measured ones.
        metrics.setdefault("gpu_hours", math.floor(hours * 1e6) / 1e6)
        if "error" in report:
            report["error"] = self._mask.apply_text(report["error"])
        return {**report, "metrics": metrics, "logs_uri": lease.job["uploads"]["logs_uri"]}

    def _clean_up(self, folder: Path) -> None:
        """Ends the job's processes and removes its folder.

        Logs errors instead of raising them: they must not fail the job or end the slot.
        """
        try:
            self._run_as.end_processes()
            remove_tree(folder)
        except OSError as error:
            logger.warning("cannot clean up %s: %s", folder, error)

    def _run_logged(self, lease: Lease, folder: Path) -> dict[str, Any] | None:
        uploads = lease.job["uploads"]
        bound = int(uploads.get("log_max_bytes", _DEFAULT_LOG_BYTES))
        log = LogFile(folder / "log", bound, self._mask)
        sender = LogSender(self._control_plane, lease, log.read)
        sender.start()
        try:
            return self._attempt(lease, folder, log)
        finally:
            log.close()
            sender.finish()
            if "log_url" not in uploads and self._config.artifacts_dir:
                log.copy_to(local_path(self._config.artifacts_dir, str(uploads["logs_uri"])))

    def _attempt(self, lease: Lease, folder: Path, log: LogFile) -> dict[str, Any] | None:
        storage = storage_for(self._config, self._control_plane, lease)
        try:
            if not self._is_allowed(lease):
                return _failed(
                    "this worker does not accept this job's type or tenant", retryable=True
                )
            source = Inputs(self._config, self._control_plane, lease)
            home = folder
            if lease.job_type == DEPLOYMENT_TYPE:
                self._deployments.stop_previous(lease)
                home = self._deployments.folder_for(lease)
            inputs = source.fetch(home / "inputs")
            resume_from = _fetch_checkpoint(source, folder / "resume", log)
            outcome = self._try_until_done(lease, folder, log, inputs, resume_from, storage)
            return {
                "status": "completed",
                "result": outcome.result,
                "metrics": outcome.metrics,
                "artifacts_uri": storage.artifacts_uri,
            }
        except JobStopped as stopped:
            log.note(f"stopped: {stopped.why}")
            return _report_stop(stopped)
        except HandlerFailed as error:
            return _failed(str(error), retryable=error.transient)
        except NoSuchInput as error:
            log.note(str(error))
            return _failed(str(error), retryable=error.transient)
        except StaleAttempt as error:
            logger.warning("job %s no longer belongs to this worker: %s", lease.job_id, error)
            return None
        except (Refused, TransferFailed) as error:
            log.note(str(error))
            return _failed(str(error), retryable=isinstance(error, TransferFailed))

    def _try_until_done(
        self,
        lease: Lease,
        folder: Path,
        log: LogFile,
        inputs: Mapping[str, Path],
        resume_from: Path | None,
        storage: Storage,
    ) -> Outcome:
        tries = self._config.local_max_retries + 1
        for tried in range(1, tries + 1):
            here = HandlerFolder(folder / f"try-{tried}")
            checkpoints = CheckpointSender(self._control_plane, lease, here.path)
            try:
                config = handler_for(self._config, lease.job_type)
                commit = commit_of(config, self._config.git_commit)
                if lease.job_type == DEPLOYMENT_TYPE:
                    outcome = self._deployments.deploy(lease, inputs, log, storage, commit)
                else:
                    here.describe(lease, inputs, resume_from, self._teachers(lease), commit)
                    outcome = self._run_handler(config, lease, here, log, checkpoints)
                    here.upload(storage, log)
                return outcome.with_commit(commit)
            except HandlerFailed as error:
                kind = "transient" if error.transient else "fatal"
                logger.warning("job %s failed (%s): %s", lease.job_id, kind, error)
                if not error.transient or tried == tries:
                    if error.transient:  # another worker may continue the job
                        checkpoints.upload_last()
                    here.free_space()  # the disk may be full, and the log needs space
                    log.note(f"failed, {kind}: {error}")
                    raise
                log.note(f"failed, transient: {error}; local retry {tried} of {tries - 1}")
                resume_from = (
                    move_newest_checkpoint(here.path, folder / "resume" / here.path.name)
                    or resume_from
                )
                here.free_space()
                lease.sleep(min(0.5 * 2**tried, _MAX_BACKOFF_S))
        raise AssertionError("unreachable: the last try returns or raises")

    def _run_handler(
        self,
        config: HandlerConfig,
        lease: Lease,
        here: HandlerFolder,
        log: LogFile,
        checkpoints: CheckpointSender,
    ) -> Outcome:
        lease.require()
        reports = self._reports = Reports(here.progress_file)
        name = container_name(lease.proof.worker_id, lease.job_id, lease.attempt)
        supervised = start_handler(config, here, self._env, name, self._run_as.user_for(config))
        lease.on_stop(lambda: supervised.stop(self._config.stop_grace_s))
        limit_s = float(lease.job["timeout_s"]) + _DEADLINE_SLACK_S
        limit_s = min(limit_s, config.timeout_s or limit_s)
        overdue = threading.Event()

        def end_overdue() -> None:
            overdue.set()
            supervised.stop(self._config.stop_grace_s)

        timer = threading.Timer(min(limit_s, threading.TIMEOUT_MAX), end_overdue)
        timer.daemon = True
        timer.start()
        checkpoints.start()
        try:
            log.pump(supervised.output, reports.read_line)
            ending = wait_for_handler(config, supervised)
        finally:
            # No process of the handler may survive, whatever went wrong.
            supervised.stop(grace_s=0)
            timer.cancel()
            checkpoints.finish()
            if config.image:
                remove_container(name)
        lease.require()
        if overdue.is_set():
            raise HandlerFailed(f"the handler ran longer than {limit_s:g} s", transient=False)
        return read_outcome(here, ending, log.last_line, reports)

    def _teachers(self, lease: Lease) -> dict[str, dict[str, str]]:
        """The teachers for the job file, by name.

        These are the configured endpoints, and the tenant's deployments that the job names.
        """
        configured = {
            name: {key: value for key, value in asdict(teacher).items() if value is not None}
            for name, teacher in self._config.teachers.items()
        }
        own: dict[str, dict[str, str]] = {}
        for entry in lease.job["inputs"]:
            if entry.get("inference_url"):
                teacher = {"base_url": str(entry["inference_url"])}
                if entry.get("inference_token"):
                    teacher["api_key"] = str(entry["inference_token"])
                own[str(entry["value"])] = teacher
        return {**configured, **own}

    def _is_allowed(self, lease: Lease) -> bool:
        """Whether the configuration allows the job's type and tenant.

        An older control plane may dispatch a job that is not allowed.
        """
        types, tenants = self._config.allow_job_types, self._config.allow_tenants
        tenant = lease.job.get("user_id")
        return (not types or lease.job_type in types) and (
            not tenants or tenant is None or tenant in tenants
        )


def _fetch_checkpoint(source: Inputs, folder: Path, log: LogFile) -> Path | None:
    """Fetches the checkpoint of an earlier attempt.

    Returns None if there is no checkpoint, or if the store has lost it or returns other bytes. The
    job then starts from the beginning.
    """
    try:
        return source.fetch_checkpoint(folder)
    except Refused as error:
        if error.code != "file_not_found":
            raise
        lost: Exception = error
    except TransferFailed as error:
        lost = error
    log.note(f"starts from the beginning, because the checkpoint is lost: {lost}")
    return None


def _report_stop(stopped: JobStopped) -> dict[str, Any] | None:
    match stopped.why:
        case "cancelled":
            return _failed("cancelled", retryable=False)
        case "lost":
            return None
        case _:
            return _failed(f"the worker was stopped {stopped.why}", retryable=True)


def _failed(error: str, *, retryable: bool) -> dict[str, Any]:
    return {"status": "failed", "error": sendable_text(error), "retryable": retryable}
