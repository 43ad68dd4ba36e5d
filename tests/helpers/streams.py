"""What the tests of streams share."""


def run_to_end(df, folder):
    """Write what a stream has for now to ``out`` in a folder, from the checkpoint there; give the ended query."""
    query = (
        df.writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(folder / "out"))
    )
    assert query.awaitTermination(200)
    assert query.exception() is None
    return query
