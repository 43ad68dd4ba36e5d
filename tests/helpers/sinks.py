"""Shared parts of the tests of sinks."""

import spark_ext


def numbers(df):
    """Return the values of the column ``id``, in order."""
    return sorted(row.id for row in df.select("id").collect())


def run_query(spark, folder, name, rows=2, **options):
    """Run a query with the checkpoint NAME on one more file of rows; it writes them to ``out`` in a folder."""
    source, out = folder / f"{name}-in", str(folder / "out")
    spark.range(rows).write.mode("append").parquet(str(source))

    def write(batch_df, batch_id):
        spark_ext.write_once(batch_df, batch_id, out, **options)

    query = (
        spark.readStream.schema("id bigint")
        .parquet(str(source))
        .writeStream.foreachBatch(write)
        .option("checkpointLocation", str(folder / f"{name}-checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(200)
    if query.exception() is not None:
        raise query.exception()
    return query


def put(folder, name, text):
    """Move a complete file into a folder in one step, as the source of a stream requires."""
    folder.mkdir(exist_ok=True)
    partial = folder.parent / name
    partial.write_text(text)
    partial.rename(folder / name)
