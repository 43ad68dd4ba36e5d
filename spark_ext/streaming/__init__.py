"""Functions that keep state: `deduplicate` and `process`."""
