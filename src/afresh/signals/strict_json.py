"""JSON from strangers: what could be read in two ways is an error, and every error names a position.

Refused beside what the grammar forbids: names that stand twice in one object, NaN and infinities, halves of surrogate
pairs, bytes that are not UTF-8, and nesting deeper than the interpreter reads.
"""

import json
import re
from typing import Any, NoReturn

from afresh.errors import SignalError

MAX_DEPTH = 64
_STRUCTURE = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{}]')
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")


def read_json(body: bytes | str) -> Any:
    """The value of a JSON text; SignalError with the position of what is wrong.

    >>> read_json(b'{"url": "https://e.org/"}')
    {'url': 'https://e.org/'}
    >>> read_json(b'{"a": NaN}')
    Traceback (most recent call last):
    afresh.errors.SignalError: The JSON text has NaN, which is no number, at character 6.
    """
    text = body if isinstance(body, str) else _decoded(body)
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise SignalError(f"The JSON text is wrong at character {error.pos}: {error.msg}.") from None
    except RecursionError:
        raise SignalError(f"The JSON text is nested too deep at character {_depth_reached(text)}.") from None
    except UnicodeEncodeError:
        place = _SURROGATE.search(text)
        at = place.start() if place is not None else 0
        raise SignalError(f"The JSON text has half a surrogate pair at character {at} or later.") from None
    except _Wrong as wrong:
        raise SignalError(f"The JSON text has {wrong.what} at character {_place(text, wrong)}.") from None
    except ValueError:  # a number with more digits than the interpreter reads
        raise SignalError("The JSON text has a number that is too long, at character 0 or later.") from None
    return value


class _Wrong(Exception):
    def __init__(self, what: str, text: str, nth: int) -> None:
        self.what, self.text, self.nth = what, text, nth


def _decoded(body: bytes) -> str:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SignalError(f"The JSON text is not UTF-8 at byte {error.start}.") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _Wrong(f"the name {twice[:40]!r} twice in one object", json.dumps(twice), 2)
    return found


def _constant(word: str) -> NoReturn:
    raise _Wrong(f"{word}, which is no number,", word, 1)


def _place(text: str, wrong: _Wrong) -> int:
    at = -1
    for _ in range(wrong.nth):
        following = text.find(wrong.text, at + 1)
        at = following if following >= 0 else at
    return max(at, 0)


def _depth_reached(text: str) -> int:
    """Where the nesting becomes deeper than `MAX_DEPTH`."""
    depth = 0
    for match in _STRUCTURE.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(match[0], 0)
        if depth > MAX_DEPTH:
            return match.start()
    return 0
