"""What a page's address says of its kind: the words of its parts, and figures of its shape."""

import re
from dataclasses import dataclass

MAX_ADDRESS = 2083  # characters

_PARTS = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.\-]*:)?(?://([^/?#]*))?([^?#]*)(\?[^#]*)?")
_NUMBER = re.compile(r"[0-9]+")
_YEAR = re.compile(r"/(?:19|20)[0-9][0-9](?:/|-|$)")
_FILE = re.compile(r"\.[A-Za-z0-9]{2,5}$")
_WORD = re.compile(r"[A-Za-z0-9]+")

# Salts of what an address is made of.
HOST, DOMAIN, FOLDER, LAST, WHOLE_FOLDER, SHAPE, QUERY = range(1, 8)
FIGURES = ("depth", "query", "numbers", "year", "last_words", "root", "ends_in_slash", "file", "known")


@dataclass(frozen=True, slots=True)
class Address:
    """An address taken apart."""

    host: str
    path: str
    pieces: list[tuple[str, int]]  # texts whose words count, each with its salt
    figures: list[float]


def address(url: str) -> Address:
    """Take an address apart, whatever is wrong with it.

    >>> [text for text, salt in address("https://docs.e.org/guide/first-steps.html?a=1").pieces][:4]
    ['docs', 'e.org', 'guide', 'first-steps.html']
    """
    found = _PARTS.match(url[:MAX_ADDRESS])
    host, path, query = (part or "" for part in found.groups()) if found else ("", "", "")
    host = host.rpartition("@")[2].partition(":")[0].lower()
    labels = host.split(".")
    segments = [segment for segment in path.split("/") if segment]
    last = segments[-1] if segments else ""
    words, numbers = len(_WORD.findall(last)), len(_NUMBER.findall(path))
    pieces = [(label, HOST) for label in labels[:-2] if label != "www"]
    pieces.append((".".join(labels[-2:]), DOMAIN))
    pieces += [(segment, FOLDER) for segment in segments[:-1]]
    pieces += [(last, LAST), (last, FOLDER)]
    pieces += [(_joined(segment), WHOLE_FOLDER) for segment in segments[:-1]]
    pieces.append(("".join(f"&{each.partition('=')[0]}" for each in query[1:].split("&")[:8]), QUERY))
    in_year = bool(_YEAR.search(path))
    ending = last.rpartition(".")[2] if _FILE.search(last) else "none"
    shape = (
        f"depth{'abcdefg'[min(len(segments), 6)]} slash{'ny'[path.endswith('/')]} query{'ny'[bool(query)]} "
        f"numbers{'abcd'[min(numbers, 3)]} last{'abcdefghi'[min(words, 8)]} ending{ending} year{'ny'[in_year]}"
    )
    pieces.append((shape, SHAPE))
    figures = [
        float(min(len(segments), 10)),
        float(bool(query)),
        float(min(numbers, 10)),
        float(in_year),
        float(min(words, 20)),
        float(not segments),
        float(path.endswith("/")),
        float(ending != "none"),
        float(bool(host)),
    ]
    return Address(host, path, pieces, figures)


def _joined(segment: str) -> str:
    """A folder's name as one word."""
    return "".join(_WORD.findall(segment)).lower()
