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
    """The numbers that the condition was evaluated with."""
    error: str | None = None


class Approval(Model):
    """A person's decision whether a step may begin."""

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
    """For a step that uses the best of several steps: the best step, and the value that decided."""
    error: str | None = None
    error_code: str | None = None


class Pipeline(Model):
    """A snapshot of a pipeline, which runs several jobs in order."""

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
        """Whether the pipeline has ended. Only a resume can continue it."""
        return self.completed_at is not None or self.status in ("completed", "failed", "cancelled")

    def step(self, name: str) -> PipelineStep:
        """Returns the step with this name. Raises KeyError if there is none."""
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
    """The estimated cost of a step."""

    name: str
    job_type: str
    expected_usd: float = 0.0
    low_usd: float = 0.0
    high_usd: float = 0.0
    basis: str | None = None
    samples: int = 0


class PipelineEstimate(Model):
    """The estimated cost and duration of a pipeline."""

    shown: ClassVar[tuple[str, ...]] = ("expected_usd", "low_usd", "high_usd", "duration_s")

    expected_usd: float
    low_usd: float = 0.0
    high_usd: float = 0.0
    duration_s: float | None = None
    """Excludes waits for workers and approvals. None if a step's type has no completed job yet."""
    currency: str = "USD"
    steps: list[StepEstimate] = Field(default_factory=list)
    rate_card: str | None = None
    rate_card_version: int | None = None
