"""Pipelines."""

from __future__ import annotations

from datetime import datetime
from html import escape
from typing import Any, ClassVar

from pydantic import Field

from .base import Model


class Gate(Model):
    """A condition on a step's outcome."""

    condition: str
    passed: bool | None = None
    values: dict[str, Any] = Field(default_factory=dict)
    """The numbers that it was judged by."""
    error: str | None = None


class Approval(Model):
    """A person's word on whether a step may begin."""

    approved: bool | None = None
    by: str | None = None
    at: datetime | None = None
    note: str | None = None


class PipelineStep(Model):
    """One job of a pipeline."""

    shown: ClassVar[tuple[str, ...]] = ("name", "status", "job_id", "progress", "cost_usd", "error")

    name: str
    job_type: str
    status: str
    """`pending`, `waiting_approval`, `running`, `completed`, `failed`, `skipped`, `cancelled`."""
    job_id: str | None = None
    job_status: str | None = None
    progress: float | None = None
    attempts: int | None = None
    worker_id: str | None = None
    needs: list[str] = Field(default_factory=list)
    optional: bool = False
    started_at: datetime | None = None
    completed_at: datetime | None = None
    cost_usd: float | None = None
    estimated_cost_usd: float | None = None
    expected_duration_s: float | None = None
    reused: bool = False
    gate: Gate | None = None
    approval: Approval | None = None
    chosen: dict[str, Any] | None = None
    """Of several, which was the best, and by what number."""
    error: str | None = None
    error_code: str | None = None


class Pipeline(Model):
    """Jobs that are run one after the other, as it was when it was read."""

    shown: ClassVar[tuple[str, ...]] = (
        "pipeline_id",
        "name",
        "template",
        "status",
        "error",
        "cost_usd",
        "steps",
    )

    pipeline_id: str
    status: str
    """`running`, `waiting_approval`, `completed`, `failed` or `cancelled`."""
    user_id: str | None = None
    created_by: str | None = None
    name: str | None = None
    template: str | None = None
    run: int = 1
    error: str | None = None
    error_code: str | None = None
    tags: list[str] = Field(default_factory=list)
    reuse: bool = False
    budget_usd: float | None = None
    budget_state: str | None = None
    cost_usd: float = 0.0
    estimated_cost_usd: float | None = None
    expected_remaining_s: float | None = None
    created_at: datetime | None = None
    completed_at: datetime | None = None
    cancel_requested_at: datetime | None = None
    steps: list[PipelineStep] = Field(default_factory=list)
    definition: dict[str, Any] | None = None

    @property
    def is_final(self) -> bool:
        """It has ended; only a resume would go on with it."""
        return self.completed_at is not None or self.status in ("completed", "failed", "cancelled")

    def step(self, name: str) -> PipelineStep:
        """Raises KeyError where no step has this name."""
        for step in self.steps:
            if step.name == name:
                return step
        raise KeyError(name)

    def _repr_html_(self) -> str:
        rows = "".join(
            "<tr>"
            + "".join(
                f'<td style="text-align:left">{escape("" if each is None else str(each))}</td>'
                for each in (step.name, step.status, step.job_id, step.cost_usd, step.error)
            )
            + "</tr>"
            for step in self.steps
        )
        head = "".join(f"<th>{name}</th>" for name in ("step", "status", "job", "USD", "error"))
        title = f"Pipeline {self.pipeline_id}: {self.status}, {self.cost_usd:g} USD"
        return f"<table><caption>{escape(title)}</caption><tr>{head}</tr>{rows}</table>"


class StepEstimate(Model):
    """What a step would cost."""

    name: str
    job_type: str
    expected_usd: float = 0.0
    low_usd: float = 0.0
    high_usd: float = 0.0
    basis: str | None = None
    samples: int = 0


class PipelineEstimate(Model):
    """What a pipeline would cost, and how long it would take."""

    shown: ClassVar[tuple[str, ...]] = ("expected_usd", "low_usd", "high_usd", "duration_s")

    expected_usd: float
    low_usd: float = 0.0
    high_usd: float = 0.0
    duration_s: float | None = None
    """Without waiting for workers and people; None where some type has no job to go by."""
    currency: str = "USD"
    steps: list[StepEstimate] = Field(default_factory=list)
    rate_card: str | None = None
    rate_card_version: int | None = None
