"""The job types; each handler is the module of that name."""

# Written by `npm run openapi -- --write` from core/jobs/types: don't edit it here.

JOB_TYPES = ("generate", "audit", "distill", "train", "evaluate", "deploy")
