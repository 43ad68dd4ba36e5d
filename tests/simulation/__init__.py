"""Seeded simulations of queues whose tables are audited."""
