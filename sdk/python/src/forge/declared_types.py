"""The job types, and the templates of pipelines."""

# Written by `npm run openapi -- --write` from core/jobs/types: don't edit it here.

JOB_TYPES = ("generate", "audit", "distill", "train", "evaluate", "deploy")
TEMPLATES = ("byo-data", "synthetic")
URI_ONLY = ("audit",)
"""Types that take a dataset by its URI, and not by its id."""
