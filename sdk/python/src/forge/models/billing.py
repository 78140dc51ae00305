"""Bills, budgets and estimates."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from pydantic import Field

from .base import Model


class Budget(Model):
    """A monthly cap and the current usage."""

    cap_usd: float | None = None
    warning_usd: float | None = None
    state: str = "ok"
    """`ok`, `warning` or `exhausted`."""
    spent_usd: float = 0.0
    committed_usd: float = 0.0
    remaining_usd: float | None = None


class BudgetAnswer(Model):
    """A tenant's budget. `budget` is None if the tenant has no budget."""

    user_id: str
    budget: Budget | None = None


class BillingSummary(Model):
    """A tenant's costs in one month."""

    shown: ClassVar[tuple[str, ...]] = (
        "user_id",
        "period",
        "total_cost_usd",
        "accruing_usd",
        "by_job_type",
        "gpu_hours_total",
        "tokens_total",
        "forecast_usd",
        "budget",
    )

    user_id: str
    period: str
    total_cost_usd: float
    by_job_type: dict[str, float] = Field(default_factory=dict)
    by_tag: dict[str, float] = Field(default_factory=dict)
    by_pipeline: dict[str, float] = Field(default_factory=dict)
    records: int = 0
    gpu_hours_total: float = 0.0
    tokens_total: float = 0.0
    unbilled_gpu_hours: float = 0.0
    accruing_usd: float = 0.0
    storage: dict[str, Any] = Field(default_factory=dict)
    estimated_invoice: dict[str, Any] = Field(default_factory=dict)
    forecast_usd: float | None = None
    budget: Budget | None = None
    rate_card: str | None = None


class BillingDay(Model):
    """The cost of one day."""

    day: str
    """YYYY-MM-DD, UTC."""
    by_job_type: dict[str, float] = Field(default_factory=dict)
    total_cost_usd: float = 0.0


class DailyBilling(Model):
    """A tenant's costs in one month, by day."""

    user_id: str
    period: str
    total_cost_usd: float = 0.0
    days: list[BillingDay] = Field(default_factory=list)


class BillingRecord(Model):
    """The bill of one job."""

    shown: ClassVar[tuple[str, ...]] = ("job_id", "job_type", "total_cost_usd", "state", "formula")

    job_id: str
    job_type: str
    total_cost_usd: float
    user_id: str | None = None
    metrics: dict[str, Any] = Field(default_factory=dict)
    unit_costs: dict[str, float] = Field(default_factory=dict)
    cost_breakdown: dict[str, float] = Field(default_factory=dict)
    state: str = "final"
    """`accruing` while a deployment is active, then `final`."""
    rate_card: str | None = None
    rate_card_version: int | None = None
    formula: str = ""
    """The formula with its numbers."""
    flags: list[str] = Field(default_factory=list)
    attempts: list[dict[str, Any]] = Field(default_factory=list)
    created_at: datetime | None = None


class Rates(Model):
    """The rates for a job submitted now."""

    rate_card: str
    version: int = 1
    currency: str = "USD"
    basis: str | None = None
    gpu_hour: dict[str, float] = Field(default_factory=dict)
    generation_per_1m_tokens: float | None = None
    distill_per_1m_tokens: float | None = None
    audit_per_1k_rows: float | None = None
    eval_per_100_samples: float | None = None
    deploy_per_month: float | None = None
    input_per_1m_tokens: float | None = None
    output_per_1m_tokens: float | None = None
    storage_per_gb_month: float | None = None


class Estimate(Model):
    """The estimated cost of a job."""

    shown: ClassVar[tuple[str, ...]] = ("expected_usd", "low_usd", "high_usd", "basis", "formula")

    job_type: str
    expected_usd: float
    low_usd: float
    high_usd: float
    currency: str = "USD"
    basis: str | None = None
    """The basis: `payload` (exact), `history` (your last jobs) or `prior` (a rule of thumb)."""
    samples: int = 0
    formula: str = ""
    rate_card: str | None = None
    rate_card_version: int | None = None


class AuditEntry(Model):
    """An entry of the audit log: a change, and who made it."""

    entry_id: int
    at: datetime
    action: str
    subject: str
    user_id: str | None = None
    created_by: str | None = None
    scope: str | None = None
    before: Any = None
    after: Any = None
    hash: str | None = None
    """A hash of this entry and the previous entry's hash, so that later changes can be detected."""


class RateCard(Model):
    """Prices that apply from a date."""

    name: str
    version: int
    effective_from: datetime
    prices: dict[str, Any] = Field(default_factory=dict)
    created_by: str | None = None
    created_at: datetime | None = None


class RateCardAssignment(Model):
    """The rate card for jobs that the tenant submits from `effective_from` on."""

    user_id: str
    rate_card: str
    effective_from: datetime
