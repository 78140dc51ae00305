"""The parts of a client, one file each."""
