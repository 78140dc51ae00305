"""`forge workers`."""

import re
from typing import Annotated, Any

import typer

from ..models import BootstrapPlan
from ..request import without_none
from .connection import client_of
from .options import AsJson, Limit, WorkerId
from .output import console, print_all, print_fields, print_json, print_line, print_one, print_table

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.command("list")
def list_workers(
    context: typer.Context,
    status: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="idle, busy, dead …; repeatable.")
    ] = None,
    gpu: Annotated[str | None, typer.Option(help="Part of the GPU's name.")] = None,
    search: Annotated[
        str | None, typer.Option("--search", "-q", help="Part of an id or of a tag.")
    ] = None,
    limit: Limit = 50,
    as_json: AsJson = False,
) -> None:
    """List the machines that run jobs."""
    with client_of(context) as client:
        found = list(client.workers.list(status=status, gpu=gpu, q=search, limit=limit))
    rows = (
        (
            each.worker_id,
            f"{each.status}, draining" if each.draining else each.status,
            f"{each.gpu_count} × {each.gpu_type}" if each.gpu_count else each.gpu_type,
            each.current_job_id,
            "" if each.util is None else f"{each.util:.0f} %",
            each.jobs_handled,
            each.status_reason,
        )
        for each in found
    )
    heads = ("WORKER", "STATUS", "GPU", "JOB", "UTIL", "JOBS", "WHY")
    nothing = "No workers: forge workers add --help"
    print_all("workers", found, heads, rows, nothing=nothing, as_json=as_json)


@app.command()
def get(context: typer.Context, worker_id: WorkerId, as_json: AsJson = False) -> None:
    """Show a worker and the progress of its set-up."""
    with client_of(context) as client:
        found = client.workers.get(worker_id)
    if as_json:
        print_json(found.to_dict())
        return
    print_fields(
        {
            "worker": found.worker_id,
            "status": found.status,
            "why": found.status_reason,
            "draining": "yes" if found.draining else None,
            "job": found.current_job_id,
            "host": found.ssh_host,
            "gpu": f"{found.gpu_count} × {found.gpu_type}" if found.gpu_count else found.gpu_type,
            "memory": None if not found.mem_total else f"{found.mem_used} of {found.mem_total} GB",
            "tags": found.tags,
            "version": found.version,
            "jobs": found.jobs_handled,
        }
    )
    steps = found.bootstrap.steps if found.bootstrap else []
    if steps:
        rows = [(each.step, each.status, str(each.tries), each.error) for each in steps]
        print_table(("STEP", "STATUS", "TRIES", "ERROR"), rows, nothing="")


@app.command()
def add(
    context: typer.Context,
    ssh: Annotated[str, typer.Option("--ssh", metavar="USER@HOST[:PORT]", help="SSH address.")],
    gpu_type: Annotated[str, typer.Option(help='GPU name, e.g. "A100 80GB".')],
    gpus: Annotated[int, typer.Option("--gpus", min=0, help="Number of GPUs.")] = 1,
    key_path: Annotated[
        str | None, typer.Option("--ssh-key", help="Path of a private key on the server's disk.")
    ] = None,
    host_key: Annotated[
        str | None, typer.Option("--host-key", help="SHA256:…, as ssh-keygen -l shows it.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="The worker's id (default: generated).")] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Tag for matching jobs; repeatable."),
    ] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Only show what would be done.")] = False,
    as_json: AsJson = False,
) -> None:
    """Let the server set up a machine over SSH.

    \b
    forge workers add --ssh ubuntu@gpu-1.example.org --gpus 8 --gpu-type "A100 80GB"
    """
    user, host, port = _target(ssh)
    machine: dict[str, Any] = without_none(
        {
            "gpu_count": gpus,
            "gpu_type": gpu_type,
            "ssh_port": port,
            "ssh_key_path": key_path,
            "ssh_host_key": host_key,
            "worker_id": name,
            "tags": tag,
        }
    )
    with client_of(context) as client:
        if plan:
            _show_plan(client.workers.plan(host, user, **machine), as_json=as_json)
            return
        found = client.workers.register(host, user, **machine)
    if as_json:
        print_json(found.to_dict())
        return
    print_line(console(), found.worker_id)
    err = console(stderr=True)
    print_line(err, f"Set-up started. To see its progress: forge workers get {found.worker_id}")


def _show_plan(found: BootstrapPlan, *, as_json: bool) -> None:
    if as_json:
        print_json(found.to_dict())
        return
    for each in found.plan:
        print_line(console(), f"{each.get('step')}: {each.get('does', '')}")


def _target(text: str) -> tuple[str, str, int | None]:
    # IPv6 addresses contain colons, so they need brackets.
    found = re.fullmatch(r"([^@]+)@(?:\[([0-9A-Fa-f:.]+)\]|([^@:\[\]]+))(?::([0-9]{1,5}))?", text)
    if not found:
        raise typer.BadParameter(
            f"{text!r} is not user@host, user@host:port or user@[IPv6]:port", param_hint="'--ssh'"
        )
    user, address, name, port = found.groups()
    return user, address or name, int(port) if port else None


@app.command()
def drain(context: typer.Context, worker_id: WorkerId, as_json: AsJson = False) -> None:
    """Drain a worker: it finishes its job and accepts no other."""
    with client_of(context) as client:
        found = client.workers.drain(worker_id)
    print_one(found, f"{found.worker_id} is draining: it accepts no other job", as_json=as_json)


@app.command()
def undrain(context: typer.Context, worker_id: WorkerId, as_json: AsJson = False) -> None:
    """Let a draining worker accept jobs again."""
    with client_of(context) as client:
        found = client.workers.undrain(worker_id)
    print_one(found, f"{found.worker_id} accepts jobs again", as_json=as_json)


@app.command()
def summary(context: typer.Context, as_json: AsJson = False) -> None:
    """Count workers by status and GPUs by type."""
    with client_of(context) as client:
        found = client.workers.summary()
    if as_json:
        print_json(found.to_dict())
        return
    print_fields({name: number for name, number in found.by_status.items() if number})
    rows = [
        (each.gpu_type, each.workers, each.gpus, each.busy_gpus, each.idle_gpus)
        for each in found.by_gpu_type
    ]
    print_table(("GPU", "WORKERS", "GPUS", "BUSY", "IDLE"), rows, nothing="No workers")


@app.command()
def remove(context: typer.Context, worker_id: WorkerId, as_json: AsJson = False) -> None:
    """Decommission a worker immediately. Another worker gets its job."""
    with client_of(context) as client:
        found = client.workers.remove(worker_id)
    print_one(found, f"{found.worker_id} is decommissioned", as_json=as_json)
