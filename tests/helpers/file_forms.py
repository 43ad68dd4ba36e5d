"""Files with the same IDs in every form that an audit reads, and files that are broken."""

import bz2
import gzip
import json
import random

import pyarrow as pa
import pyarrow.parquet as pq


def texts(ids):
    """Return for each ending of text the lines of a file with the IDs."""
    rows = list(enumerate(ids))
    quoted = [f'"{id}",{n}' for n, id in rows]
    return {
        "txt": [list(ids)],
        "csv": [
            ["id,n", *(f"{id},{n}" for n, id in rows)],
            ['"id","a,b"', *quoted],
            ['"a\nb",id', *(f"{n},{id}" for n, id in rows)],
        ],
        "tsv": [["n\tid", *(f"{n}\t{id}" for n, id in rows)]],
        "jsonl": [
            [json.dumps({"id": id, "n": n}) for n, id in rows],
            [json.dumps({"id": id, "n": ["[" * 2_000, f"}}{n}"]}) for n, id in rows],
        ],
    }  # fmt: skip


def compressed(data):
    """Return for each ending of compression the bytes of a file."""
    sink = {name: pa.BufferOutputStream() for name in ("zstd", "lz4")}
    for name, one in sink.items():
        with pa.CompressedOutputStream(one, name) as stream:
            stream.write(data)
    half = len(data) // 2
    return {
        ".gz": gzip.compress(data[:half]) + gzip.compress(data[half:]),
        ".GZ": gzip.compress(data),
        ".bz2": bz2.compress(data),
        **{ending: sink[name].getvalue().to_pybytes() for ending, name in ((".zst", "zstd"), (".lz4", "lz4"))},
    }


def arrays(ids):
    """Return the IDs as Arrow arrays of all types; all IDs are text of version 1."""
    raw = [bytes.fromhex(id) for id in ids]
    plain = [
        pa.array(ids), pa.array(ids, pa.large_string()), pa.array(ids, pa.string_view()), pa.array(raw),
        pa.array(raw, pa.large_binary()), pa.array(raw, pa.binary_view()), pa.array(raw, pa.binary(17)),
    ]  # fmt: skip
    encoded = [one.dictionary_encode() for one in (plain[0], plain[3])]
    return [*plain, *encoded]


def forms(folder, ids):
    """Write files with the IDs in every form, and yield their paths."""
    number = 0

    def written(ending, data):
        nonlocal number
        number += 1
        path = folder / f"{number}.{ending}"
        path.write_bytes(data)
        return path

    for ending, variants in texts(ids).items():
        for lines in variants:
            for end in ("\n", "\r\n", "\r"):
                data = end.join([*lines, ""]).encode()
                yield written(ending, data)
                yield written(ending.upper(), b"\xef\xbb\xbf" + data.rstrip())
            yield from (written(f"{ending}{more}", packed) for more, packed in compressed(data).items())
    for array in arrays(ids):
        number += 1
        path = folder / f"{number}.parquet"
        pq.write_table(pa.table({"id": array}), path)
        yield path
        path = folder / f"{number}.arrow"
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, pa.schema([("id", array.type)])) as writer:
            writer.write_table(pa.table({"id": array}))
        yield path


def damaged(data, chance):
    """Return bytes with a fault: cut off, repeated, with other bytes in a place, or with brackets or quotes."""
    place = chance.randrange(len(data) + 1)
    more = chance.choice(
        [
            b"\0",
            b"\xff\xfe",
            b"[" * 30_000,
            b'{"id":' * 30_000,
            b'"',
            b"\n",
            b",",
            b"\\",
            random.Random(place).randbytes(9),
        ]
    )
    return chance.choice(
        [data[:place], data[:place] + more + data[place:], data[:place] + more + data[place + 9 :], data + data]
    )
