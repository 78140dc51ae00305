"""The job types, and what the agent has to know of them."""

# Written by `npm run openapi -- --write` from core/jobs/types: don't edit it here.

JOB_TYPES = ("generate", "audit", "distill", "train", "evaluate", "deploy")
NEEDS_TORCH = ("train", "evaluate", "deploy")
"""Types whose reference handler needs PyTorch."""
DEPLOYMENT_TYPE = "deploy"
"""The type whose handler goes on running, and serves."""
