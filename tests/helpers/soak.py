"""A writer, a cleaner and a reader of one folder of segments, with restarts, and the balance of messages at the end.

Every message that was written is read exactly once, or is in the report of the segments that were deleted before it was
read. A reader has a method ``read()``, which returns the messages that came since the last call as pairs of partition
and offset, a method ``restart()``, ``lost``: the segments that it reports as deleted, and ``missing``: pairs of
partition and offset that it reports so.
"""

import os
import re
import threading
from collections import Counter
from pathlib import Path

from msgid import iggy
from msgid.iggy.parts import read_part, walk
from msgid.retention import RetentionPolicy
from msgid.retention.cleaner import Cleaner, OsFiles

START = 1_785_000_000_000_000
SECOND = 1_000_000
EXPIRY = 60


class KilledError(BaseException):
    """The process ended here."""


class KilledFiles(OsFiles):
    """Ends the cleaner at its nth operation."""

    def __init__(self, at):
        self.left = at

    def _step(self):
        self.left -= 1
        if self.left == 0:
            raise KilledError

    def state(self, path):
        self._step()
        return OsFiles.state(self, path)

    def rename(self, path, to):
        self._step()
        OsFiles.rename(self, path, to)
        self._step()

    def remove(self, path):
        self._step()
        OsFiles.remove(self, path)
        self._step()


class Writer:
    """A partition as a server writes it: appended in pieces, rolled, and cut to whole messages after a crash."""

    def __init__(self, folder, layout):
        self.folder, self.layout = folder, layout
        folder.mkdir(parents=True)
        self.next = self.count = 0
        self.path = self._begin()
        self.half = b""

    def _begin(self):
        path = self.folder / f"{self.next:020d}.log"
        path.with_suffix(".index").write_bytes(b"")
        path.write_bytes(b"")
        self.count = 0
        return path

    def _append(self, raw):
        with open(self.path, "ab") as file:
            file.write(raw)

    def write(self, chance, now):
        """Append a few messages, perhaps only half of the last one, or begin a new segment."""
        self._append(self.half)
        self.half = b""
        if self.count >= 8 or (self.count and chance.random() < 0.1):
            self.path = self._begin()
            return 0
        made = [
            iggy.Message.new(
                chance.randbytes(chance.randrange(1, 40)),
                id=self.next + k + 1,
                offset=self.next + k,
                timestamp=now,
                layout=self.layout,
            )
            for k in range(chance.randrange(1, 4))
        ]
        raw = iggy.encode_log(made, self.layout)
        cut = chance.randrange(1, len(raw)) if chance.random() < 0.3 else len(raw)
        self._append(raw[:cut])
        self.half = raw[cut:]
        self.next += len(made)
        self.count += len(made)
        return len(made)

    def restart(self):
        """Complete what a crash has cut off: a server appends it again."""
        self._append(self.half)
        self.half = b""


class FolderReader:
    """Reads the segments under a folder in Python; its place in each partition outlives a restart."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.places = {}
        self.lost = set()
        self.missing = Counter()

    def restart(self):
        """Forget everything but the places."""
        self.places = dict(self.places)

    def read(self):
        """Return the messages since the last call."""
        found = []
        for folder in sorted({path.parent for path in self.folder.rglob("*.log")}):
            found += self._read_partition(folder)
        return found

    def _read_partition(self, folder):
        found = []
        first, place = self.places.get(folder, (0, 0))
        for path in sorted(folder.glob("*.log")):
            number = int(path.stem)
            if number < first:
                continue
            start = place if number == first else 0
            try:
                offsets, start = self._read_segment(path, number, start)
            except FileNotFoundError:
                continue  # deleted since it was listed
            found += [(str(folder), offset) for offset in offsets]
            self.places[folder] = first, place = number, start
        return found

    def _read_segment(self, path, number, start):
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size

            def read(position, length):
                file.seek(position)
                return file.read(length)

            if size <= start:
                return [], start
            end = walk(read, start, size, first_offset=number).end
            tables = (
                [part.table for part in read_part(read, start, end, end, first_offset=number)] if end > start else []
            )
        return [offset for table in tables for offset in table["offset"].to_pylist()], end


class Soak:
    """One run: a seed decides everything, but for the order in which threads work.

    Args:
        folder: An empty folder.
        chance: A `random.Random`.
        make_reader: Returns a reader of a folder.
        layouts: One partition for each.
    """

    def __init__(self, folder, chance, make_reader, layouts):
        self.folder, self.chance = Path(folder), chance
        topics = [self.folder / "streams" / "1" / "topics" / str(n) / "partitions" / "1" for n in range(len(layouts))]
        self.writers = [Writer(*made) for made in zip(topics, layouts, strict=True)]
        self.reader = make_reader(str(self.folder))
        self.policy = RetentionPolicy(default_expiry=EXPIRY, interval=0.01)
        self.now = START
        self.delivered = Counter()
        self.deleted = set()
        self.deleted_segments = set()
        self.kills = self.removals = 0

    def clock(self):
        """Return the time of the run."""
        return self.now

    def write(self):
        """Let one writer work, and time go by."""
        self.now += self.chance.randrange(1, 12) * SECOND
        writer = self.chance.choice(self.writers)
        if self.chance.random() < 0.1:
            writer.restart()
        writer.write(self.chance, self.now)

    def note(self, report):
        """Add a report to the segments that were deleted."""
        for found in report:
            if found.removed or found.expired:
                segment = found.segment
                assert segment.latest + EXPIRY * SECOND <= self.now, f"{found.path} was deleted too early"
                assert segment.closed
                self.removals += 1
                self.deleted_segments.add(os.path.abspath(found.path))
                offsets = range(segment.first_offset, segment.last_offset + 1)
                self.deleted |= {(os.path.dirname(found.path), offset) for offset in offsets}

    def clean(self):
        """Clean, or begin to: a clean-up that is killed has its report from the dry run before it."""
        if self.chance.random() < 0.5:
            self.note(Cleaner(self.folder, self.policy, clock=self.clock).clean(apply=True))
            return
        self.note(Cleaner(self.folder, self.policy, clock=self.clock).clean())
        files = KilledFiles(self.chance.randrange(1, 40))
        try:
            Cleaner(self.folder, self.policy, clock=self.clock, files=files).clean(apply=True)
        except KilledError:
            self.kills += 1

    def read(self):
        """Read the new messages."""
        if self.chance.random() < 0.2:
            self.reader.restart()
        self.delivered.update(self.reader.read())

    def run(self, steps):
        """Take so many steps, and check the balance."""
        actions = [self.write] * 8 + [self.clean] * 2 + [self.read]
        for _ in range(steps):
            self.chance.choice(actions)()
        self.check()

    def run_threads(self, seconds):
        """Let writer, two cleaners and reader work at the same time for so many seconds, and check the balance."""
        stop, errors = threading.Event(), []

        def repeat(action, pause):
            try:
                while not stop.wait(pause):
                    action()
            except BaseException as error:
                errors.append(error)
                stop.set()

        def clean():
            ended = threading.Event()
            timer = threading.Timer(0.5, ended.set)  # and begin anew
            timer.start()
            Cleaner(self.folder, self.policy, clock=self.clock).run(ended, report=self.note)

        work = [(self.write, 0.001), (clean, 0), (clean, 0.01), (self.read, 0.3)]
        threads = [threading.Thread(target=repeat, args=each) for each in work]
        for thread in threads:
            thread.start()
        stop.wait(seconds)
        stop.set()
        for thread in threads:
            thread.join(120)
        if errors:
            raise errors[0]
        self.check()

    def check(self):
        """Check that each message was read once, or deleted with a report before it was read."""
        for writer in self.writers:
            writer.restart()
        self.delivered.update(self.reader.read())
        written = {(str(writer.folder), offset) for writer in self.writers for offset in range(writer.next)}
        assert {message for message, count in self.delivered.items() if count > 1} == set()
        assert set(self.delivered) <= written
        assert written - set(self.delivered) - self.deleted == set()
        assert self.reader.lost <= self.deleted_segments
        assert set(self.reader.missing) <= self.deleted - set(self.delivered)
        assert max(self.reader.missing.values(), default=1) == 1


class SparkReader:
    """Reads the segments under a folder as a stream of Spark, one query for each call, and writes each batch once."""

    def __init__(self, spark, folder, out, checkpoint):
        self.spark, self.folder, self.out, self.checkpoint = spark, folder, str(out), str(checkpoint)
        self.seen = Counter()
        self.lost = set()
        self.missing = Counter()

    def restart(self):
        """Do nothing: every call of `read` begins at the checkpoint."""

    def read(self):
        """Return the messages since the last call."""
        import spark_ext

        def write(batch, number):
            spark_ext.write_once(batch.select("file", "offset", "reason"), number, self.out, app_id="soak")

        df = self.spark.readStream.format("iggy").load(self.folder)
        query = df.writeStream.foreachBatch(write).option("checkpointLocation", self.checkpoint)
        started = query.trigger(availableNow=True).start()
        assert started.awaitTermination(300)
        assert started.exception() is None
        if not os.path.exists(self.out):
            return []
        rows = self.spark.read.parquet(self.out).collect()
        reports = [row for row in rows if row.reason is not None]
        assert [row.reason for row in reports if not row.reason.startswith("lost: ")] == []
        offsets = [(row, re.match(r"lost: offsets (\d+) to (\d+) ", row.reason)) for row in reports]
        self.lost = {os.path.abspath(row.file) for row, found in offsets if not found}
        missing = Counter()
        for row, found in offsets:
            for offset in range(int(found[1]), int(found[2]) + 1) if found else ():
                missing[os.path.dirname(row.file), offset] += 1
        self.missing = missing
        every = Counter((os.path.dirname(row.file), row.offset) for row in rows if row.reason is None)
        new = every - self.seen
        self.seen = every
        return list(new.elements())
