"""Fixtures for every test here."""

from agent_support import control_plane, lease, server

__all__ = ["control_plane", "lease", "server"]
