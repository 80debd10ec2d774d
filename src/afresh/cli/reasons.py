"""Why crawls failed, in words for people, and counted."""

from collections import Counter
from collections.abc import Mapping

from afresh.cli.terminal import plain
from afresh.units import show_count

MAX_WIDTH = 70  # columns for a list of counts, so that it fits beside a heading on a line of 80

_WORDS = {
    "back": "it was gone and is back, as it was",
    "bad_coding": "wrongly compressed",
    "bad_protocol": "not HTTP",
    "bad_redirect": "bad redirect",
    "bad_url": "bad URL",
    "connect_timeout": "no connection in time",
    "dns": "no such host",
    "dns_timeout": "name not found in time",
    "fault": "a fault in afresh",
    "file_too_large": "too large ([files] max_size)",
    "is_a_file": "it is a file now",
    "is_a_folder": "it is a folder now",
    "noise": "only noise differs",
    "not_modified": "its source says so",
    "same_bytes": "same bytes",
    "same_text": "only markup differs",
    "too_complex": "too complex to be read, compared by its bytes",
    "names_of_address": "too many hosts on its address (politeness.address_names)",
    "network": "network fault",
    "no_connection": "no connection",
    "no_permission": "no permission to read it",
    "no_such_file": "no such file",
    "no_such_query": "no such query",
    "not_modified_without_copy": "304 without a copy",
    "not_read_only": "not only reading",
    "other_parameters": "the query has other parameters now",
    "query_error": "the database refuses the query",
    "refused_address": "address not allowed (fetch.allow_private)",
    "refused_port": "port not allowed (fetch.allow_ports)",
    "reset": "connection reset",
    "result_too_large": "too large ([[database]] max_size)",
    "robots": "forbidden by robots.txt",
    "scope": "never asked (crawl.never)",
    "special_file": "no plain file",
    "store_full": "no room in the store (store.max_bytes)",
    "symlink": "a symbolic link",
    "timeout": "timed out",
    "tls": "TLS fault",
    "tls_expired": "certificate expired",
    "tls_not_yet_valid": "certificate not yet valid",
    "tls_revoked": "certificate revoked",
    "tls_self_signed": "self-signed certificate",
    "tls_timeout": "TLS timed out",
    "tls_unknown_issuer": "certificate of unknown issuer",
    "tls_wrong_name": "certificate of another name",
    "too_large": "too large (fetch.max_body)",
    "too_many_rows": "too many rows ([[database]] max_rows)",
    "too_many_redirects": "too many redirects",
    "truncated": "cut short",
    "undefined": "names something that is not there",
    "unreachable": "cannot be reached",
}


def words(reason: str) -> str:
    """A reason for people.

    >>> words("dns"), words("status_500"), words("robots_status_503"), words("robots_timeout")
    ('no such host', 'HTTP 500', 'robots.txt: HTTP 503', 'robots.txt: timed out')
    """
    if reason.startswith("robots_"):
        return f"robots.txt: {words(reason.removeprefix('robots_'))}"
    if reason.startswith("status_"):
        return f"HTTP {plain(reason.removeprefix('status_'), 10)}"
    return _WORDS.get(reason) or plain(reason, 40) or "unknown reason"


def counted(reasons: Mapping[str, int], width: int = MAX_WIDTH) -> str:
    """How often each reason was met, the most frequent first, as many as fit.

    >>> counted({"dns": 12, "timeout": 3}), counted({"dns": 12, "timeout": 3, "reset": 1}, width=25)
    ('12 no such host, 3 timed out', '12 no such host, 4 others')
    """
    said: list[str] = []
    rest = sum(reasons.values())
    for reason, count in Counter(reasons).most_common():
        part = f"{count:,} {words(reason)}"
        others = f", {show_count(rest - count, 'other')}" if rest > count else ""
        if said and len(", ".join([*said, part])) + len(others) > width:
            return ", ".join([*said, show_count(rest, "other")])
        said.append(part)
        rest -= count
    return ", ".join(said)
