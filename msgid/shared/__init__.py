"""What `msgid` and `spark_ext` share, for no user: checks of arguments, moments, known tables, retries, messages."""
