"""Re-export `msgid.retention.cleaner` under its first public path, which stays valid."""

from msgid.retention.cleaner import Cleaner, Files, OsFiles, SegmentFile, now_in_microseconds

__all__ = ["Cleaner", "Files", "OsFiles", "SegmentFile", "now_in_microseconds"]
