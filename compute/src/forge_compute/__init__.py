"""Reference handlers for Forge's job types."""
