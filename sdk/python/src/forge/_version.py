"""The version of the distribution `forge-sdk`."""

__version__ = "0.2.0"
