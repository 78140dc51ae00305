"""`forge billing`."""

import io
import sys
from typing import Annotated

import typer

from ..models import BudgetAnswer
from ..text import moment, usd
from .connection import client_of
from .options import AsJson, JobId, JobTypes, Limit, Period, assignments, finite, job_types
from .output import console, print_all, print_fields, print_json, print_line, print_one, print_table

app = typer.Typer(rich_markup_mode=None)


@app.command()
def summary(context: typer.Context, period: Period = None, as_json: AsJson = False) -> None:
    """Show the cost of a month by type, with a forecast."""
    with client_of(context) as client:
        found = client.billing.summary(period)
    if as_json:
        print_json(found.to_dict())
        return
    budget = found.budget
    print_fields(
        {
            "month": found.period,
            "total": usd(found.total_cost_usd),
            "accruing": usd(found.accruing_usd) if found.accruing_usd else None,
            "forecast": usd(found.forecast_usd),
            "budget": f"{usd(budget.cap_usd)}, {budget.state}" if budget else None,
            "GPU hours": f"{found.gpu_hours_total:g}",
            "tokens": f"{found.tokens_total:,.0f}",
        }
    )
    rows = [(name, usd(amount)) for name, amount in sorted(found.by_job_type.items())]
    print_table(("TYPE", "COST"), rows, nothing="No jobs were billed")


@app.command()
def daily(context: typer.Context, period: Period = None, as_json: AsJson = False) -> None:
    """Show the cost of each day of a month, by job type."""
    with client_of(context) as client:
        found = client.billing.daily(period)
    if as_json:
        print_json(found.to_dict())
        return
    types = sorted({name for day in found.days for name in day.by_job_type})
    rows = [
        (
            day.day,
            usd(day.total_cost_usd),
            *(usd(day.by_job_type[name]) if name in day.by_job_type else "" for name in types),
        )
        for day in found.days
    ]
    heads = ("DAY", "COST", *(name.upper() for name in types))
    print_table(heads, rows, nothing="No days")


@app.command()
def records(
    context: typer.Context,
    period: Period = None,
    job_type: JobTypes = None,
    by_cost: Annotated[bool, typer.Option(help="Most expensive first.")] = False,
    limit: Limit = 20,
    as_json: AsJson = False,
) -> None:
    """List the bills of jobs, newest first."""
    sort = "cost" if by_cost else None
    with client_of(context) as client:
        found = list(
            client.billing.records(period=period, job_type=job_type, sort=sort, limit=limit)
        )
    rows = (
        (
            each.job_id,
            each.job_type,
            usd(each.total_cost_usd),
            each.state,
            moment(each.created_at),
            each.formula,
        )
        for each in found
    )
    heads = ("JOB", "TYPE", "COST", "STATE", "BILLED", "FORMULA")
    print_all("records", found, heads, rows, nothing="No bills", as_json=as_json)


@app.command()
def record(context: typer.Context, job_id: JobId, as_json: AsJson = False) -> None:
    """Show the bill of one job, with the formula and its numbers."""
    with client_of(context) as client:
        found = client.billing.record(job_id)
    fields = {
        "job": found.job_id,
        "type": found.job_type,
        "cost": usd(found.total_cost_usd),
        "state": found.state,
        "formula": found.formula,
        "rate card": found.rate_card,
        "notes": found.flags,
    }
    print_one(found, fields, as_json=as_json)


@app.command()
def budget(
    context: typer.Context,
    cap: Annotated[
        float | None,
        typer.Argument(metavar="[USD]", min=0, callback=finite, help="New monthly cap."),
    ] = None,
    none: Annotated[bool, typer.Option("--none", help="Remove the cap.")] = False,
    warn_at: Annotated[
        float | None, typer.Option(min=0, callback=finite, help="Warn above this amount in USD.")
    ] = None,
    no_warning: Annotated[bool, typer.Option("--no-warning", help="Never warn.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show or set the monthly cap. At the cap, new jobs are refused.

    \b
    forge billing budget 500
    """
    if none and cap is not None:
        raise typer.BadParameter("either a cap, or --none", param_hint="'--none'")
    if no_warning and warn_at is not None:
        raise typer.BadParameter("either --warn-at, or --no-warning", param_hint="'--no-warning'")
    # `...` means: don't send `warning_usd`. The API then uses its default, 80 % of the cap.
    warning = None if no_warning else ... if warn_at is None else warn_at
    with client_of(context) as client:
        if none or cap is not None:
            found = client.billing.set_budget(cap, warning_usd=warning)
        else:
            found = client.billing.budget()
    _show_budget(found, as_json=as_json)


def _show_budget(found: BudgetAnswer, *, as_json: bool) -> None:
    budget = found.budget
    if budget is None or budget.cap_usd is None:
        print_one(found, "No cap", as_json=as_json)
        return
    fields = {
        "cap": usd(budget.cap_usd),
        "state": budget.state,
        "spent": usd(budget.spent_usd),
        "committed": usd(budget.committed_usd),
        "remaining": usd(budget.remaining_usd),
    }
    print_one(found, fields, as_json=as_json)


@app.command()
def estimate(
    context: typer.Context,
    job_type: Annotated[str, typer.Argument(metavar="TYPE", autocompletion=job_types)],
    fields: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME=VALUE]...", help="Fields of the payload.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Estimate the cost of a job, with a range. Does not submit it.

    \b
    forge billing estimate generate domain=law num_samples=5000
    """
    payload = assignments(fields, "NAME=VALUE")
    with client_of(context) as client:
        found = client.billing.estimate(job_type, payload)
    known = {
        "expected": usd(found.expected_usd),
        "range": f"{usd(found.low_usd)} to {usd(found.high_usd)}",
        "based on": found.basis,
        "formula": found.formula,
    }
    print_one(found, known, as_json=as_json)


@app.command()
def export(context: typer.Context, period: Period = None, as_json: AsJson = False) -> None:
    """Print a month's billing lines as CSV.

    \b
    forge billing export --period 2026-11 > november.csv
    """
    with client_of(context) as client:
        text = client.billing.export(period)
    if as_json:
        print_json({"csv": text})
    else:
        _print_csv(text)


def _print_csv(text: str) -> None:
    if sys.stdout.isatty():
        for line in text.splitlines():
            print_line(console(), line)
        return
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(newline="")  # the CSV has its own line ends
    sys.stdout.write(text)
