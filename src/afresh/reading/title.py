"""The title of a page, from its first bytes: for lists, where reading whole pages would take too long."""

import html

from afresh.reading.decode import utf8

HEAD = 64 << 10  # bytes of a page in which its title is looked for
MAX_TITLE = 120  # characters of it that are kept
_START, _TAG, _TEXT = b"<title", 200, 2_000  # bytes of a start tag, and of what follows it, at most
_TRIES = 20  # start tags that are no such thing
_BEHIND = b"> \t\n\f\r/"  # what follows the name of a tag


def title_in(body: bytes, content_type: str) -> str:
    """The title of a page in HTML, in one line; "" if it has none.

    >>> title_in(b"<html><TITLE lang=en>Caf&eacute;\\n &amp; more</title>", "text/html")
    'Café & more'
    >>> title_in(b"<titles>no</titles><title>yes</title>", "text/html"), title_in(b"<title>x</title>", "text/plain")
    ('yes', '')
    """
    if "html" not in content_type.lower():
        return ""
    text = utf8(body[:HEAD], content_type)
    lower, at = text.lower(), 0
    for _ in range(_TRIES):
        at = lower.find(_START, at)
        if at < 0:
            return ""
        at += len(_START)
        end = lower.find(b">", at, at + _TAG)
        if end >= 0 and lower[at] in _BEHIND:
            stop = lower.find(b"<", end + 1, end + 1 + _TEXT)
            said = text[end + 1 : end + 1 + _TEXT if stop < 0 else stop]
            return one_line(html.unescape(said.decode("utf-8", "replace")), MAX_TITLE)
    return ""


def one_line(text: str, longest: int) -> str:
    """Text from anywhere as one line, without signs that could steer what shows it.

    >>> one_line("Sale\\r\\nBcc: all@example.org\\x1b[31m", 40)
    'Sale Bcc: all@example.org?[31m'
    """
    words = " ".join(text.split())
    safe = "".join(character if character.isprintable() else "?" for character in words)
    return safe if len(safe) <= longest else f"{safe[: longest - 1]}…"
