"""The jobs of ``python -m spark_ext``, each a module: what it does to a DataFrame, and its reading and writing."""
