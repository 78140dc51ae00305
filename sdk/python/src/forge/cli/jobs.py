"""`forge jobs`."""

from typing import Annotated

import typer

from ..text import moment, usd
from .connection import client_of
from .job_type_commands import app as submit
from .job_wait import detach, wait_for
from .options import AsJson, JobId, JobTypes, Limit, Wait
from .output import console, print_all, print_json, print_line, print_one, print_table, print_text
from .submit import after_submission

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
app.add_typer(submit, name="submit", help="Submit a job.")


@app.command("list")
def list_jobs(
    context: typer.Context,
    status: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="pending, running, completed, failed …; repeatable."),
    ] = None,
    job_type: JobTypes = None,
    tag: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="All of these; repeatable.")
    ] = None,
    pipeline: Annotated[str | None, typer.Option(help="Of this pipeline.")] = None,
    worker: Annotated[str | None, typer.Option(help="Run by this worker.")] = None,
    search: Annotated[
        str | None,
        typer.Option("--search", "-q", help="Beginning of an id, or part of a tag or the notes."),
    ] = None,
    error_code: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="timeout, worker_lost …; repeatable.")
    ] = None,
    limit: Limit = 20,
    as_json: AsJson = False,
) -> None:
    """List jobs, newest first.

    \b
    forge jobs list --status running --type train
    """
    with client_of(context) as client:
        jobs = list(
            client.jobs.list(
                status=status,
                job_type=job_type,
                tag=tag,
                pipeline_id=pipeline,
                worker_id=worker,
                q=search,
                error_code=error_code,
                limit=limit,
            )
        )
    rows = (
        (
            job.job_id,
            job.raw_status,
            job.job_type,
            "" if job.progress is None or job.is_final else f"{job.progress:.0%}",
            moment(job.created_at),
            job.tags,
        )
        for job in jobs
    )
    heads = ("JOB", "STATUS", "TYPE", "DONE", "CREATED", "TAGS")
    print_all("jobs", jobs, heads, rows, nothing="No jobs", as_json=as_json)


@app.command()
def counts(context: typer.Context, as_json: AsJson = False) -> None:
    """Count unfinished jobs, and the jobs that ended in the last day."""
    with client_of(context) as client:
        found = client.jobs.counts()
    if as_json:
        print_json(found.to_dict())
        return
    statuses = list(found.by_status)
    rows = [
        (job_type, *(str(of_type.get(status, 0)) for status in statuses))
        for job_type, of_type in found.by_job_type.items()
    ]
    total = ("all", *(str(number) for number in found.by_status.values()))
    print_table(("TYPE", *(status.upper() for status in statuses)), [*rows, total], nothing="")
    for code, number in {**found.by_pending_code, **found.by_error_code}.items():
        print_line(console(), f"{number} {code}")


@app.command()
def get(context: typer.Context, job_id: JobId, as_json: AsJson = False) -> None:
    """Show a job: its status, why it waits, its result."""
    with client_of(context) as client:
        job = client.jobs.get(job_id)
    reason = job.pending_reason
    fields = {
        "job": job.job_id,
        "type": job.job_type,
        "status": job.raw_status,
        "progress": None if job.progress is None else f"{job.progress:.0%}",
        "waits": (reason.message or reason.code) if reason else None,
        "error": job.error,
        "error code": job.error_code,
        "cancelled by": job.cancelled_by,
        "attempts": job.attempts,
        "worker": job.worker_id,
        "cost": None if job.cost_usd is None else usd(job.cost_usd),
        "estimated": None if job.estimated_cost_usd is None else usd(job.estimated_cost_usd),
        "payload": job.payload,
        "params": job.params,
        "resources": job.resources,
        "result": job.result,
        "pipeline": job.pipeline_id,
        "retry of": job.retried_from,
        "tags": job.tags,
        "notes": job.notes,
        "created": moment(job.created_at),
        "started": moment(job.started_at),
        "completed": moment(job.completed_at),
        "workflow": job.workflow_url,
    }
    print_one(job, fields, as_json=as_json)


@app.command()
def logs(
    context: typer.Context,
    job_id: JobId,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Print new lines until the log is complete.")
    ] = False,
    attempt: Annotated[int | None, typer.Option(min=1, help="Default: the latest attempt.")] = None,
    as_json: AsJson = False,
) -> None:
    """Print a job's log.

    \b
    forge jobs logs -f job_...
    """
    with client_of(context) as client:
        if not follow:
            text = client.jobs.logs(job_id, attempt=attempt)
            if as_json:
                print_json({"job_id": job_id, "log": text})
                return
            if text:
                print_text(text.removesuffix("\n"))
            return
        try:
            for line in client.jobs.logs(job_id, follow=True, attempt=attempt):
                if as_json:
                    print_json({"line": line}, indent=None)
                else:
                    print_text(line)
        except KeyboardInterrupt:
            detach(job_id, f"forge jobs logs -f {job_id}")


@app.command()
def wait(context: typer.Context, job_id: JobId, as_json: AsJson = False) -> None:
    """Wait until a job ends; exit code 1 if it failed. Ctrl-C does not stop the job."""
    with client_of(context) as client:
        wait_for(client, client.jobs.get(job_id), as_json=as_json)


@app.command()
def cancel(context: typer.Context, job_id: JobId, as_json: AsJson = False) -> None:
    """Cancel a job."""
    with client_of(context) as client:
        job = client.jobs.cancel(job_id)
    state = "is cancelled" if job.is_final else "ends as soon as its worker has stopped it"
    print_one(job, f"{job.job_id} {state}", as_json=as_json)


@app.command()
def retry(
    context: typer.Context, job_id: JobId, wait: Wait = False, as_json: AsJson = False
) -> None:
    """Submit a job's payload again, as a new job."""
    with client_of(context) as client:
        after_submission(client, client.jobs.retry(job_id), wait=wait, as_json=as_json)
