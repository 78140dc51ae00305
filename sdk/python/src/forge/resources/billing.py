"""What was billed, what it will come to, and the caps."""

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
    """`client.billing`. A `period` is a month in UTC, as `2026-11`; by default this one."""

    @operation
    def summary(
        self, period: str | None = None, *, user_id: str | None = None
    ) -> Request[BillingSummary]:
        """A month: by type, tag and pipeline, with invoice, forecast and budget."""
        parse = BillingSummary.model_validate
        return get("/api/billing/summary", parse, period=period, user_id=user_id)

    @operation
    def daily(
        self, period: str | None = None, *, user_id: str | None = None
    ) -> Request[DailyBilling]:
        """What each day of a month has cost, by job type; they add up to the summary."""
        parse = DailyBilling.model_validate
        return get("/api/billing/daily", parse, period=period, user_id=user_id)

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
        """The bills of jobs; `limit` is how many in all.

        Newest first, or with `sort="cost"` most expensive first; of all months, or of one `period`.
        """
        read = BillingRecord.model_validate
        query = {"period": period, "job_type": job_type, "sort": sort, "user_id": user_id}
        return PageRequest("/api/billing/records", "records", read, query, limit, page_size)

    @operation
    def record(self, job_id: str | BaseJob) -> Request[BillingRecord]:
        """The bill of one job, with the formula and its numbers."""
        path = path_of("/api/billing/records/{}", id_of(job_id))
        return get(path, BillingRecord.model_validate)

    @operation
    def rates(self, *, user_id: str | None = None) -> Request[Rates]:
        """What a job submitted now is billed by."""
        return get("/api/billing/rates", Rates.model_validate, user_id=user_id)

    @operation
    def estimate(self, job_type: str, payload: Mapping[str, Any]) -> Request[Estimate]:
        """What a job would cost, with a range. Nothing is submitted."""
        body = {"job_type": job_type, "payload": payload}
        return Request("POST", "/api/billing/estimate", Estimate.model_validate, body=body)

    @operation
    def budget(self, *, user_id: str | None = None) -> Request[BudgetAnswer]:
        """The monthly cap, and where the month stands."""
        return get("/api/billing/budget", BudgetAnswer.model_validate, user_id=user_id)

    @operation
    def set_budget(
        self,
        cap_usd: float | None,
        *,
        warning_usd: float | EllipsisType | None = ...,
        user_id: str | None = None,
    ) -> Request[BudgetAnswer]:
        """Caps a month; None takes the cap away.

        Submissions warn from `warning_usd` on: without it from 80 % of the cap; None: never.
        """
        body: dict[str, object] = {"cap_usd": cap_usd}
        if warning_usd is not ...:
            body["warning_usd"] = warning_usd
        parse = BudgetAnswer.model_validate
        return Request("PUT", "/api/billing/budget", parse, {"user_id": user_id}, body)

    @operation
    def export(self, period: str | None = None, *, user_id: str | None = None) -> Request[str]:
        """A month's lines as CSV."""
        query = {"period": period, "user_id": user_id}
        headers = {"Accept": "text/csv"}
        return Request("GET", "/api/billing/export", str, query, headers=headers, is_text=True)

    @listing
    def audit(
        self,
        *,
        user_id: str | None = None,
        limit: int | None = None,
        page_size: int | None = None,
    ) -> PageRequest[AuditEntry]:
        """Who changed budgets and the like, newest first."""
        read = AuditEntry.model_validate
        query = {"user_id": user_id}
        return PageRequest("/api/audit", "entries", read, query, limit, page_size)
