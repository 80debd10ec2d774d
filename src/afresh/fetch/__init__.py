"""Get the bytes: every way to fetch is one method, and every outcome is a value.

An order arrives with what is known of the page; `http` asks the server whether that still holds, reads the answer
within its limits, and hands back a `Fetched` that says what was seen or, in one word, what went wrong. `scripted`
answers from a script instead.
"""

from afresh.fetch.base import Fetcher
from afresh.fetch.http import Http, Limits
from afresh.fetch.scripted import Scripted

__all__ = ["Fetcher", "Http", "Limits", "Scripted"]
