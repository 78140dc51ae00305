"""Forge's worker agent: registers this machine, polls for jobs, runs them and reports results."""

__version__ = "0.2.0"
