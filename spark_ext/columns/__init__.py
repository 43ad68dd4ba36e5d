"""Columns: each function takes columns or their names and returns a `Column`. `spark_ext` exports the public names."""
