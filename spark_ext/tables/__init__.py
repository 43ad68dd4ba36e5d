"""Tables of messages and outputs: how a micro-batch is written once, and how expired segments are deleted."""
