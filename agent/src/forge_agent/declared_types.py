"""The job types, and the facts about them that the agent needs."""

# Written by `npm run openapi -- --write` from core/jobs/types: don't edit it here.

JOB_TYPES = ("generate", "audit", "distill", "train", "evaluate", "deploy")
NEEDS_TORCH = ("train", "evaluate", "deploy")
"""Types whose reference handler needs PyTorch."""
DEPLOYMENT_TYPE = "deploy"
"""The type whose handler serves a model until it is stopped."""
