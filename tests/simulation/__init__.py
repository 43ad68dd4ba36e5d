"""Seeded simulations: of fleets of processes that make IDs, and of queues whose tables are audited.

``PYTHONPATH=tests python -m simulation --minutes 10`` runs random fleets of look-alike processes, and prints how many
repeat an ID.
"""
