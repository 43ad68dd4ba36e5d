"""Modules of `msgid` and `spark_ext` alone: checks of arguments, moments, known tables, retries, messages."""
