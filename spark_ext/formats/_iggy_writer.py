"""The writer of ``format("iggy")``: messages as segment files."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from msgid._moments import unix_micros
from msgid._validate import quote
from msgid.iggy._wire import facts_of
from spark_ext._filesystem import filesystem
from spark_ext.formats._iggy_files import ENDING

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from msgid.iggy.message import Message


class Written(WriterCommitMessage):
    """A file that a task has written under a temporary name, its final name, and the log of its messages."""

    def __init__(self, partial: str | None, name: str | None, log: str | None) -> None:
        self.partial = partial
        self.name = name
        self.log = log


class _Segment:
    """The rule for the messages of a segment: their offsets rise, and they are of one log."""

    def __init__(self) -> None:
        self.first: int | None = None
        self.last = -1
        self.log: str | None = None

    def add(self, offset: int, log: str | None) -> None:
        """Add the next message; ValueError if it does not belong into the segment."""
        if offset <= self.last:
            raise ValueError(
                f"cannot write a segment in which offset {offset} comes after {self.last}: sort rows by offset"
            )
        if log is not None and self.log not in (None, log):
            raise _two_logs(str(self.log), log)
        self.first = offset if self.first is None else self.first
        self.last, self.log = offset, log or self.log


def _two_logs(one: str, other: str) -> ValueError:
    return ValueError(
        f"cannot write messages of two logs to one folder, got {quote(one)} and {quote(other)}: "
        "write each log to a folder of its own, or leave out the column source"
    )


class IggyWriter(DataSourceArrowWriter):
    """Writes one segment file per task, named by its first offset in 20 digits; files appear after all are written."""

    def __init__(self, path: str, layout: str, overwrite: bool) -> None:
        self.path = path
        self.layout = layout
        self.overwrite = overwrite

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Write the rows of a task under a temporary name."""
        import uuid

        from msgid.iggy.log import encode

        layout: Any = self.layout
        files, path = filesystem(self.path)
        files.create_dir(path, recursive=True)
        partial, segment = f"{path}/.{uuid.uuid4().hex}.partial", _Segment()
        try:
            with files.open_output_stream(partial) as file:
                for batch in iterator:
                    for row in batch.to_pylist():
                        message = message_of(row, layout)
                        segment.add(message.offset, row.get("source"))
                        file.write(encode(message, layout))
        except BaseException:
            with suppress(OSError):
                files.delete_file(partial)
            raise
        if segment.first is None:
            files.delete_file(partial)
            return Written(None, None, None)
        return Written(partial, f"{path}/{segment.first:020d}{ENDING}", segment.log)

    def commit(self, messages: list[Any]) -> None:
        """Rename the files after all tasks have ended."""
        import pyarrow.fs as pafs

        files, path = filesystem(self.path)
        written = [message for message in messages if message is not None and message.name is not None]
        names = [message.name for message in written]
        taken = [info.path for info in files.get_file_info(names) if info.type != pafs.FileType.NotFound]
        twice = [name for name in names if names.count(name) > 1]
        if twice or (taken and not self.overwrite):
            self.abort(messages)
            raise FileExistsError(f"there would be two segments {(twice or taken)[0]}: sort and part rows by offset")
        logs = sorted({message.log for message in written if message.log is not None})
        if len(logs) > 1:
            self.abort(messages)
            raise _two_logs(*logs[:2])
        if self.overwrite:
            for info in files.get_file_info(pafs.FileSelector(path, allow_not_found=True)):
                if info.path.endswith(ENDING):
                    files.delete_file(info.path)
        for message in written:
            files.move(message.partial, message.name)

    def abort(self, messages: list[Any]) -> None:
        """Delete the files with temporary names."""
        files, _ = filesystem(self.path)
        for message in messages:
            if message is not None and message.partial is not None:
                files.delete_file(message.partial)


def message_of(row: dict[str, Any], layout: Any) -> Message:
    """Return the message of a row; `msgid.iggy.Message.new` has the values of missing columns.

    Its checksum is computed for the layout. A message whose checksum is wrong keeps it, if its layout is kept.

    Raises:
        ValueError: if the row is not a message, or its wrong checksum cannot be kept.
    """
    from dataclasses import replace

    from msgid.iggy.headers import NAMES, checked
    from msgid.iggy.message import Message

    id, reason = row.get("id"), row.get("reason")
    if reason is not None or id is None:
        raise ValueError(f"cannot write a row as a message: {reason or 'its id is NULL'}; leave out such rows")
    timestamp = _micros(row.get("timestamp")) or 0
    headers = dict(row.get("headers") or [])
    odd = next((key for key in headers if key.partition(":")[0] in NAMES and ":" in key), None)
    if odd is not None:
        raise ValueError(
            f"cannot write the header {quote(odd)} of offset {row.get('offset')}: its key may be of another kind than "
            "text, which a row does not tell; leave out the header"
        )
    made = Message.new(
        row.get("payload") or b"",
        id=int.from_bytes(id, "little"),
        offset=row.get("offset") or 0,
        timestamp=timestamp,
        state=row.get("state"),
        headers={key: checked(NAMES[held["kind"]], held["value"], None) for key, held in headers.items()},
        origin_timestamp=_micros(row.get("origin_timestamp")),
        layout=layout,
    )
    if row.get("checksum_ok") is not False:
        return made
    # The checksums of later layouts cover the position of a message, too.
    if row.get("layout") != layout or not facts_of(layout).has_state:
        raise ValueError(
            f"cannot write the message of offset {made.offset} in the layout {layout}, because its checksum is wrong: "
            "leave out the rows whose checksum_ok is false"
        )
    return replace(made, checksum=row["checksum"])


def _micros(moment: Any) -> int | None:
    """Return microseconds since 1970 of a datetime or a number."""
    from datetime import datetime

    return unix_micros(moment) if isinstance(moment, datetime) else moment
