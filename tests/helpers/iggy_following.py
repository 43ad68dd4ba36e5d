"""A followed folder in memory, and a reader of it by `msgid.iggy.following`."""

import json
import random

from helpers.iggy_files import messages

from msgid import iggy
from msgid.iggy import _marks, following, parts


class Folder:
    """Segments in memory, with a clock for their times; the bytes that `latest` reads are counted."""

    def __init__(self, files=()):
        self.files = dict(files)
        self.times = dict.fromkeys(self.files, 1)
        self.clock = 1
        self.read_in_all = 0
        self.deleted = {}
        """The last bytes of deleted segments."""
        self.hidden = set()
        """Segments that a listing lacks."""
        self.sizes = {}
        """Former sizes of segments, which a listing has."""

    def write(self, name, raw):
        self.clock += 1
        self.files[name] = raw
        self.times[name] = self.clock

    def delete(self, name):
        self.deleted[name] = self.files.pop(name)

    def seen(self):
        return [
            _marks.Seen(name, self.sizes.get(name, len(raw)), self.times[name])
            for name, raw in self.files.items()
            if name not in self.hidden
        ]

    def opened(self, name):
        return Opened(self, self.files[name]) if name in self.files else None

    def boundary(self, name, place):
        return Opened(self, self.files[name][:place]).boundary(place, 0)


class Opened:
    def __init__(self, folder, raw):
        self.folder, self.raw, self.size = folder, raw, len(raw)

    def bytes_at(self, position, length):
        self.folder.read_in_all += length
        return self.raw[position : position + length]

    def boundary(self, target, first):
        layout = parts.detect_file(self.bytes_at, self.size).layout
        return parts.boundary(self.bytes_at, self.size, target, start=first, layout=layout or "auto").place

    def starts(self, first, stop):
        layout = parts.detect_file(self.bytes_at, self.size).layout
        return parts.last_starts(self.bytes_at, stop, start=first, layout=layout or "auto")

    is_indexed = True

    def after(self, start, stop):
        layout = parts.detect_file(self.bytes_at, self.size).layout
        return parts.offset_after(self.bytes_at, start, stop, layout=layout or "auto")


def name(topic, first):
    return f"streams/1/topics/{topic}/partitions/1/{first:020d}.log"


def log(count, first=0, layout="h64", seed=1):
    made = messages(random.Random(seed), layout, count, first)
    return b"".join(iggy.encode(message, layout) for message in made if message.payload)


class Reader:
    """A reader that plans, reads and restarts from the JSON of its offset."""

    def __init__(self, folder, every=1000, **limits):
        self.folder, self.every, self.limits = folder, every, limits
        self.offset = _marks.to_json({})
        self.rows, self.ids, self.lost, self.missing, self.sizes = [], [], [], [], []

    @classmethod
    def restarted(cls, other, every, **limits):
        """Return a reader with other settings that goes on from the JSON of an offset."""
        reader = cls(other.folder, every, **limits)
        reader.offset = json.loads(json.dumps(other.offset))
        reader.rows, reader.ids, reader.lost, reader.missing = other.rows, other.ids, other.lost, other.missing
        return reader

    def marks(self, offset):
        return _marks.from_json(json.loads(json.dumps(offset)), lambda file: file)

    def plan(self):
        start = self.marks(self.offset)
        end = following.latest(start, self.folder.seen(), self.folder.opened, **self.limits)
        if end is None:
            return None
        return _marks.to_json(end)

    def run(self, end):
        found = following.parts(self.marks(self.offset), self.marks(end), self.every, self.folder.boundary)
        self.sizes.append(sum(part.stop - part.start for part in found if not part.lost))
        for part in found:
            if part.offsets is not None:
                self.missing.append((part.name, *part.offsets))
                continue
            raw = self.folder.files.get(part.name)
            read = None if raw is None else Opened(self.folder, raw)
            if part.lost or read is None or not _marks.has_head(part.head, read.bytes_at):
                self.lost.append((part.name, part.start, part.stop))
                continue
            layout = parts.detect_file(read.bytes_at, read.size).layout
            place = parts.boundary(read.bytes_at, part.end, part.start, start=part.first, layout=layout).place
            if place >= part.stop:
                continue
            for found_rows in parts.read_part(read.bytes_at, place, part.stop, part.end, layout, upgrade=True):
                self.rows += [(part.name, offset) for offset in found_rows.table["offset"].to_pylist()]
                self.ids += [int.from_bytes(id, "little") for id in found_rows.table["id"].to_pylist()]
                if found_rows.error is not None:
                    self.rows.append((part.name, str(found_rows.error)))
        self.offset = end

    def to_end(self, most=1000):
        for _ in range(most):
            end = self.plan()
            if end is None:
                return self
            self.run(end)
        raise AssertionError("the reader does not end")
