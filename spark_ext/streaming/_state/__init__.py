"""State as logs of buckets, in Spark's state store. The page "State on Spark" of the documentation explains it."""
