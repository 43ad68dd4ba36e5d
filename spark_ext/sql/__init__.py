"""SQL functions: their definitions, and `register`, which creates them in a session."""
