"""Many loops on one store: each worker crawls the hosts that it owns, and the budget flows to where it gains most.

The truth is in PostgreSQL: who owns which hosts, until when, and what each may spend. `allot` moves budget, `Register`
holds leases, `Worker` runs an engine and a daemon for one part, `Coordinator` watches. What starts and restarts workers
is a `Placer`: plain processes on one machine, or Ray's actors on many.
"""

from afresh.cluster.budget import Share, allot, in_force
from afresh.cluster.ownership import moved, owner_of_slice, owners

__all__ = ["Share", "allot", "in_force", "moved", "owner_of_slice", "owners"]
