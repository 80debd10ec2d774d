"""IndexNow: a site says which of its pages have changed, and proves by a key file that it is the site.

Only what the protocol says is checked here; the key file is the caller's to fetch. A key file at the root speaks for
its whole host, one in a folder for that folder.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import ada_url

from afresh.errors import SignalError
from afresh.signals.strict_json import read_json

MAX_URLS = 10_000
MAX_ADDRESS = 2_083
KEY_FILE_BYTES = 1 << 12  # of a key file that are looked at; a key has 128 at most
_KEY = re.compile(r"[A-Za-z0-9-]{8,128}")


class WrongHost(SignalError):
    """Addresses that do not belong to the host, or lie outside the folder of its key file."""


@dataclass(frozen=True, slots=True)
class Submission:
    """What was submitted: pages of one host, each once, and where the proof lies. All addresses are normalised."""

    host: str  # with its port, if that is not the usual one
    key: str
    key_file: str
    urls: tuple[str, ...]


def from_query(query: Mapping[str, str]) -> Submission:
    """A submission by GET; SignalError if it is none, WrongHost if its parts do not fit together.

    >>> from_query({"url": "https://e.org/a", "key": "0123456789abcdef"}).key_file
    'https://e.org/0123456789abcdef.txt'
    """
    return _submission("", query.get("key"), query.get("keyLocation"), [query.get("url")])


def from_body(body: bytes) -> Submission:
    """A submission by POST; the same errors."""
    said = read_json(body)
    if not isinstance(said, dict):
        raise SignalError("The body is not a JSON object.")
    urls, host = said.get("urlList"), said.get("host")
    if not isinstance(urls, list) or not isinstance(host, str) or not host:
        raise SignalError("The body has no host, or no urlList.")
    return _submission(host, said.get("key"), said.get("keyLocation"), urls)


def is_proof(body: bytes, key: str) -> bool:
    """Whether a key file holds the key, and nothing else.

    >>> is_proof(b"\\xef\\xbb\\xbf01234567\\n", "01234567"), is_proof(b"<html>01234567", "01234567")
    (True, False)
    """
    return body[:KEY_FILE_BYTES].removeprefix(b"\xef\xbb\xbf").strip() == key.encode()


def _submission(host: str, key: object, key_file: object, urls: list[object]) -> Submission:
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise SignalError("The key is not 8 to 128 letters, digits and hyphens.")
    if len(urls) > MAX_URLS:
        raise SignalError(f"There are more than {MAX_URLS:,} addresses.")
    whole = list(dict.fromkeys(_normal(url) for url in urls))
    if not whole:
        raise SignalError("There is no address.")
    origin = _origin(whole[0])
    name = _host_of(origin)
    if host and _host_of(_origin(_normal(f"{origin.partition('//')[0]}//{host}/"))) != name:
        raise WrongHost("The first address is not of the host.")
    file = _normal(key_file) if key_file else f"{origin}/{key}.txt"
    if _host_of(_origin(file)) != name:
        raise WrongHost("The key file is at another host.")
    folder = file.partition("?")[0].rpartition("/")[0][len(_origin(file)) :] + "/"
    for url in whole:
        own = _origin(url)
        if _host_of(own) != name or not url[len(own) :].startswith(folder):
            raise WrongHost("An address is of another host, or outside the folder of the key file.")
    return Submission(name, key, file, tuple(whole))


def _normal(url: object) -> str:
    """An address as it is asked, without a fragment."""
    if not isinstance(url, str) or not 0 < len(url) <= MAX_ADDRESS:
        raise SignalError(f"An address is no text of at most {MAX_ADDRESS:,} characters.")
    try:
        whole = ada_url.normalize_url(url.strip()).partition("#")[0]
    except (ValueError, UnicodeError):
        raise SignalError("An address is not a URL.") from None
    if not whole.startswith(("http://", "https://")) or "@" in whole.split("/", 3)[2]:
        raise SignalError("An address is not a plain web address.")
    return whole


def _origin(url: str) -> str:
    return url[: url.index("/", 8)]


def _host_of(origin: str) -> str:
    return origin.partition("//")[2]
