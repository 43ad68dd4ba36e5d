"""Re-export `msgid.retention.cleaner` under its first public path, which stays valid."""
