"""Bills, estimates and budgets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import EllipsisType
from typing import Any

from ..listing import PageRequest
from ..models import (
    AuditEntry,
    BaseJob,
    BillingRecord,
    BillingSummary,
    BudgetAnswer,
    DailyBilling,
    Estimate,
    Rates,
)
from ..operation import M, Resource, listing, operation
from ..request import Request, get, path_of
from .job_requests import id_of


class Billing(Resource[M]):
    """`client.billing`.

    `period`: a month in UTC, such as `2026-11`. Default: this month. The default of `records` is
    all months.
    """

    @operation
    def summary(
        self, period: str | None = None, *, user_id: str | None = None
    ) -> Request[BillingSummary]:
        """Summarizes a month's costs by type, tag and pipeline.

        The result also has the estimated invoice, the forecast and the budget.
        """
        return get("/api/billing/summary", BillingSummary, period=period, user_id=user_id)

    @operation
    def daily(
        self, period: str | None = None, *, user_id: str | None = None
    ) -> Request[DailyBilling]:
        """Reads a month's cost by day and job type. The days add up to the total of `summary`."""
        return get("/api/billing/daily", DailyBilling, period=period, user_id=user_id)

    @listing
    def records(
        self,
        *,
        period: str | None = None,
        job_type: str | Sequence[str] | None = None,
        sort: str | None = None,
        user_id: str | None = None,
        limit: int | None = None,
        page_size: int | None = None,
    ) -> PageRequest[BillingRecord]:
        """Lists the bills of jobs. Without `period`, lists the bills of all months.

        The newest bill comes first. With `sort="cost"`, the most expensive bill comes first.
        `limit`: maximum number in total.
        """
        query = {"period": period, "job_type": job_type, "sort": sort, "user_id": user_id}
        return PageRequest(
            "/api/billing/records", "records", BillingRecord, query, limit, page_size
        )

    @operation
    def record(self, job_id: str | BaseJob) -> Request[BillingRecord]:
        """Reads the bill of one job, with the formula and its numbers."""
        return get(path_of("/api/billing/records/{}", id_of(job_id)), BillingRecord)

    @operation
    def rates(self, *, user_id: str | None = None) -> Request[Rates]:
        """Reads the rates for a job submitted now."""
        return get("/api/billing/rates", Rates, user_id=user_id)

    @operation
    def estimate(self, job_type: str, payload: Mapping[str, Any]) -> Request[Estimate]:
        """Estimates the cost of a job, with a range. Does not submit it."""
        body = {"job_type": job_type, "payload": payload}
        return Request("POST", "/api/billing/estimate", Estimate, body=body)

    @operation
    def budget(self, *, user_id: str | None = None) -> Request[BudgetAnswer]:
        """Reads the monthly cap and the current usage."""
        return get("/api/billing/budget", BudgetAnswer, user_id=user_id)

    @operation
    def set_budget(
        self,
        cap_usd: float | None,
        *,
        warning_usd: float | EllipsisType | None = ...,
        user_id: str | None = None,
    ) -> Request[BudgetAnswer]:
        """Sets the monthly cap. None removes it.

        When the month's costs reach `warning_usd`, submissions return a warning. Default: 80 % of
        the cap. None disables the warning.
        """
        body: dict[str, object] = {"cap_usd": cap_usd}
        if warning_usd is not ...:
            body["warning_usd"] = warning_usd
        return Request("PUT", "/api/billing/budget", BudgetAnswer, {"user_id": user_id}, body)

    @operation
    def export(self, period: str | None = None, *, user_id: str | None = None) -> Request[str]:
        """Exports a month's billing lines as CSV."""
        query = {"period": period, "user_id": user_id}
        headers = {"Accept": "text/csv"}
        return Request("GET", "/api/billing/export", str, query, headers=headers, is_text=True)

    @listing
    def audit(
        self, *, user_id: str | None = None, limit: int | None = None, page_size: int | None = None
    ) -> PageRequest[AuditEntry]:
        """Lists changes of budgets and other settings, newest first."""
        query = {"user_id": user_id}
        return PageRequest("/api/audit", "entries", AuditEntry, query, limit, page_size)
