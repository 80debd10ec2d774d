"""Which URLs exist and which hosts are ready.

A URL comes in from outside in any spelling and leaves as its canonical form (`url`), under which everything else knows
it. Its host is what politeness is counted by (`hosts`): after every answer the host rests, longer if it was slow, much
longer if it failed.
"""

from afresh.frontier.hosts import Hosts, Politeness
from afresh.frontier.url import canonical, host_of

__all__ = ["Hosts", "Politeness", "canonical", "host_of"]
