"""Tests that each implementation of a seam must pass, for a message format of your own. They need pytest."""

from spark_ext.testing.messages import MessageFormatTests

__all__ = ["MessageFormatTests"]
