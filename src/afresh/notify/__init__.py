"""Who is told of changes: rules say of which, channels carry messages, an outbox in the store keeps them until then.

A change is found in the store, not in memory: each rule remembers the number of the last one that it has seen, and
moves on in the transaction that puts its message into the outbox. So whatever is killed, each change makes one message
for each rule that it matches, and a message leaves once it was delivered. It may arrive twice, always with the same
identifier.
"""

from afresh.notify.courier import Courier
from afresh.notify.rules import Rule

__all__ = ["Courier", "Rule"]
