"""The parts of `spark_ext.process`: packed rows, states in pages, and the rules of handling."""
