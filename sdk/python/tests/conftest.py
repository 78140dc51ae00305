"""Fixtures for all tests in this folder."""

from sdk_support import client, no_pauses, no_surroundings, server

__all__ = ["client", "no_pauses", "no_surroundings", "server"]
