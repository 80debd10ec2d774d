"""Get the bytes: every way to fetch is one method, and every outcome is a value.

An order arrives with what is known of the page. `target` parses its address; `resolve` finds the host, and `guard`
looks at every address before a socket is made for it, which `connect` does; `wire` keeps connections and asks over
them, and they speak `http1` and fill an `answer`; `http` asks whether what is known still holds and follows redirects
step by step; `headers` takes from the answer what makes sense; `read` and `inflate` bring the body in within its limit,
all within a `deadline`; `reasons` has one word for whatever goes wrong. The result is a `Fetched`.
`scripted` answers from a script instead.
"""

from afresh.fetch.base import Fetcher
from afresh.fetch.guard import Guard
from afresh.fetch.http import Http, Limits
from afresh.fetch.inflate import gunzip
from afresh.fetch.scripted import Scripted

__all__ = ["Fetcher", "Guard", "Http", "Limits", "Scripted", "gunzip"]
