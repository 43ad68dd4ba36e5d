"""Tables of messages and outputs: write each micro-batch once, and delete expired segments."""
