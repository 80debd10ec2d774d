"""CDX: indexes of captures, a line each, as web archives keep them beside WARC files.

Read are lines with the usual letters in a first line (` CDX N b a m s k r M S V g`), lines of eleven, ten or nine
fields without one, and CDXJ. Written are eleven fields, in the order of their keys.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

MAX_LINE = 64 << 10  # bytes
HEADER = " CDX N b a m s k r M S V g"
_USUAL = {11: "NbamskrMSVg", 10: "NbamskrMVg", 9: "NbamskrVg"}


@dataclass(frozen=True, slots=True)
class Line:
    """A capture: when which address answered what, and where that stands."""

    url: str
    time: float
    status: int = 0
    content_type: str = ""
    digest: str = ""
    size: int = -1
    offset: int = -1
    file: str = ""


def read(path: Path) -> Iterator[Line | None]:
    """The captures of a file in their order; None for a line that makes no sense."""
    letters = ""
    with path.open("rb") as file:
        while raw := file.readline(MAX_LINE):
            text = raw.decode("utf-8", "replace").rstrip("\r\n")
            if text.lstrip().startswith("CDX "):
                letters = "".join(text.split()[1:])
            elif text.strip() and not text.startswith("!"):
                yield _line(text, letters)


def _line(text: str, letters: str) -> Line | None:
    start = text.find("{")
    if start > 0 and len(text[:start].split()) == 2:
        return _json_line(text, start)
    fields = text.split(" ")
    names = letters or _USUAL.get(len(fields), "")
    if len(fields) != len(names):
        return None
    said = dict(zip(names, fields, strict=True))
    return _made(said.get("a", ""), said.get("b", ""), said, "smkSVg")


def _json_line(text: str, start: int) -> Line | None:
    try:
        said = json.loads(text[start:])
        if not isinstance(said, dict):
            return None
        names = {"s": "status", "m": "mime", "k": "digest", "S": "length", "V": "offset", "g": "filename"}
        fields = {letter: str(said.get(name, "-")) for letter, name in names.items()}
        return _made(str(said.get("url", "")), text[:start].split()[1], fields, "smkSVg")
    except (ValueError, RecursionError):
        return None


def _made(url: str, stamp: str, said: Mapping[str, str], letters: str) -> Line | None:
    status, kind, digest, size, offset, file = (said.get(letter, "-") for letter in letters)
    try:
        time = datetime.strptime(stamp[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None
    if not url or len(stamp) != 14:
        return None
    return Line(
        url,
        time,
        _number(status, 0),
        "" if kind == "-" else kind[:200],
        "" if digest == "-" else digest[:200],
        _number(size, -1),
        _number(offset, -1),
        "" if file == "-" else file,
    )


def _number(text: str, otherwise: int) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else otherwise


def key(url: str) -> str:
    """What lines are sorted by: the host from its end, then path and query.

    >>> key("http://www.example.org:8080/B?c=1")
    'org,example,www:8080)/b?c=1'
    """
    rest = url.split("//", 1)[-1]
    host, slash, path = rest.partition("/")
    name, colon, port = host.partition(":")
    return f"{','.join(reversed(name.lower().split('.')))}{colon}{port}){slash}{path.lower()}"


def write(path: Path, lines: Iterable[Line]) -> int:
    """Write an index; how many lines it has."""
    made = sorted(
        f"{key(each.url)} {_stamp(each.time)} {each.url} {_field(each.content_type)} {each.status or '-'}"
        f" {each.digest.removeprefix('sha1:') or '-'} - - {_known(each.size)} {_known(each.offset)} {_field(each.file)}"
        for each in lines
    )
    with path.open("w", encoding="utf-8") as file:
        file.write(HEADER + "\n")
        file.writelines(line + "\n" for line in made)
    return len(made)


def _stamp(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%Y%m%d%H%M%S")


def _known(number: int) -> str:
    return str(number) if number >= 0 else "-"


def _field(text: str) -> str:
    """A field has no blanks, or it would be two; of a type what is before its parameters."""
    return "".join(text.split(";")[0].split()) or "-"
