"""Forge's worker agent: registers this machine, pulls jobs, runs them, reports."""

__version__ = "0.2.0"
