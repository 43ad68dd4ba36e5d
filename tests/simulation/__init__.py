"""A simulation of the library's stateful parts, with one seed for all that is random: clocks, faults, and the order.

``PYTHONPATH=tests python -m simulation --minutes 60`` runs new seeds until the first violation. With ``--world
fleets``, it runs random fleets of look-alike processes, and prints how many repeat an ID.
"""

from simulation.generators import Generators
from simulation.sinks import Sinks

WORLDS = {"generators": Generators, "sinks": Sinks}
