"""Shared helpers for tests of streams."""


def run_to_end(df, folder):
    """Write the available rows of a stream to ``out`` in a folder, with the checkpoint there; return the query."""
    query = (
        df.writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(folder / "out"))
    )
    assert query.awaitTermination(200)
    assert query.exception() is None
    return query
