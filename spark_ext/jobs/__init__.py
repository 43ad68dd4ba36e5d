"""The jobs of ``python -m spark_ext``, one module per job: read the input, transform it, write the output tables."""
