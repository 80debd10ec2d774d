"""Every exception that afresh raises.

    AfreshError
    ├── ConfigError      a setting, option or argument that cannot be used
    ├── InputError       a URL or a file of the user's that cannot be read
    ├── SolverError      a planning problem that has no answer
    ├── SignalError      a change hint that cannot be understood
    ├── FetchError       the fetcher itself cannot work (a page that fails to load is a value, not an error)
    ├── NotYet           what is asked for cannot be told now, and will be soon
    ├── StoreError       the store cannot be opened, read or written
    │   ├── BodyDamaged  a copy in it is not what was stored
    │   ├── InboxFull    too much waits in it for a runner
    │   └── StoreLocked  another process is running on it
    └── ClusterError     the cluster cannot be reached or has lost a part

Each carries one clear sentence (`message`) and what to do about it (`hint`). Ordinary outcomes of a crawl (not
modified, gone, refused, timed out) are values of `afresh.types.Outcome` and never raised.
"""


class AfreshError(Exception):
    """The root of the tree: a sentence for people and a hint on what to do.

    >>> str(AfreshError("The budget is negative.", hint="Give a rate such as 10/s."))
    'The budget is negative. Give a rate such as 10/s.'
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".rstrip()


class ConfigError(AfreshError):
    """A setting, option or argument that cannot be used."""


class InputError(AfreshError):
    """A URL or a file of the user's that cannot be read."""


class SolverError(AfreshError):
    """A planning problem that has no answer."""


class SignalError(AfreshError):
    """A change hint that cannot be understood."""


class FetchError(AfreshError):
    """The fetcher itself cannot work; a page that fails to load is a value, not an error."""


class NotYet(AfreshError):
    """What is asked for cannot be told now, and will be soon."""


class StoreError(AfreshError):
    """The store cannot be opened, read or written."""


class BodyDamaged(StoreError):
    """A copy in the store is not what was stored; the store may be sound otherwise."""


class InboxFull(StoreError):
    """Too many wishes and too much evidence wait in the store for a runner."""


class StoreLocked(StoreError):
    """Another process is running on the store."""


class ClusterError(AfreshError):
    """The cluster cannot be reached or has lost a part."""
