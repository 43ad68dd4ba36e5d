"""Message formats on Spark: ``format("iggy")``, decoding functions, and one table for the messages of every format."""
