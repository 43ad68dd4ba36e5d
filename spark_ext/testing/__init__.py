"""Tests that each implementation of a seam must pass, for a format of your own. They need pytest."""

from spark_ext.testing.messages import MessageFormatTests
from spark_ext.testing.tables import TableFormatTests

__all__ = ["MessageFormatTests", "TableFormatTests"]
