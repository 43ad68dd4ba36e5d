"""Seeded simulations: queues whose tables are audited, and processors and sinks in a world of faults.

`simulation.mutations` puts old faults back. These are the schedules that each one needed, of `simulation.processing`
from seed 0:

====================================================================  =========
fault                                                                 schedules
====================================================================  =========
a key goes on after a failed message                                          5
a key goes on in the next transaction of a call                               5
the tasks of one key do not wait for each other                               2
a cancelled task lets the tasks behind it go first                            6
the server does not end a silent transaction                                 21
a store takes entries of an old version                                      13
a key that another worker has changed is not handled again                   31
a duplicate does not publish its outputs again                                1
a redelivered message runs the new version of its handler                    21
outputs are not compared with those of the first time                        19
forget deletes entries whose outputs are not published                       75
a batch after a restored checkpoint counts as written                         8
a batch that was published and not recorded is written again                 12
====================================================================  =========
"""
