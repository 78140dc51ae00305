"""Waits for a job and shows its progress."""

from collections.abc import Callable
from typing import NoReturn

import typer

from ..client import Forge
from ..errors import ForgeError, JobFailedError
from ..job import Job
from ..live import is_shown, job_line
from ..models import JobEvent
from ..text import duration, usd
from .output import console, print_fields, print_json, print_line

INTERRUPTED = 130


def detach(thing_id: str, *ways_back: str) -> NoReturn:
    """Ends the command after Ctrl-C. The job or pipeline continues. Prints how to follow it."""
    err = console(stderr=True)
    print_line(err, f"{thing_id} continues. To wait for it again:")
    for way in ways_back:
        print_line(err, f"  {way}")
    raise typer.Exit(INTERRUPTED)


def wait_for(client: Forge, job: Job, *, as_json: bool) -> NoReturn:
    """Waits until the job ends, then ends the command.

    Exit code 0 if the job has completed, 1 if it has failed.
    """
    job_id = job.job_id
    try:
        with job_line(job_id, lambda: client.jobs.get(job_id), progress=not as_json) as line:
            line.update(job)
            on_event = line.record if as_json or is_shown(True) else _status_printer()
            job = client.jobs.wait(job_id, on_event=on_event, progress=False)
    except JobFailedError as error:
        _show_end(client, client.jobs.get(error.job.job_id), as_json=as_json)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        detach(job_id, f"forge jobs wait {job_id}", f"forge jobs logs -f {job_id}")
    _show_end(client, job, as_json=as_json)
    raise typer.Exit(0)


def _status_printer() -> Callable[[JobEvent], None]:
    """Returns a function that prints a line for each new status.

    `wait_for` uses the function if there is no live display.
    """
    printed: list[str] = []

    def print_status(event: JobEvent) -> None:
        status = event.raw_status or ""
        if status and printed[-1:] != [status]:
            printed.append(status)
            print_line(console(stderr=True), f"{event.job_id}: {status}")

    return print_status


def _show_end(client: Forge, job: Job, *, as_json: bool) -> None:
    if as_json:
        print_json(job.to_dict())
        return
    took = ""
    if job.started_at and job.completed_at:
        took = f" in {duration((job.completed_at - job.started_at).total_seconds())}"
    if job.status == "completed":
        print_line(console(), f"{job.job_id} completed{took}", "green")
        result = job.result or {}
        # Leaves out lists and objects, which may be long. `forge jobs get` shows them.
        short = {
            name: value for name, value in result.items() if not isinstance(value, dict | list)
        }
        print_fields({**short, "cost": _cost(client, job)})
        return
    print_line(console(), f"{job.job_id} failed{took}: {job.error or job.error_code}", "red")
    if job.attempts or job.started_at:
        print_line(console(stderr=True), f"Its log: forge jobs logs {job.job_id}")


def _cost(client: Forge, job: Job) -> str | None:
    """Returns the job's cost, or None if Forge does not return a bill.

    The command must not fail only because the cost is missing.
    """
    try:
        return usd(client.billing.record(job).total_cost_usd)
    except ForgeError:
        return None
