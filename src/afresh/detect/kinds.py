"""Kinds of text that machines put on pages and nobody waits for: tokens, clocks, times taken, counts of visitors.

A kind says nothing by itself. It is one sign more where a text has differed at nearly every look (`detect.noise`).
"""

import re

MIN_TURNS = 4  # from letters to digits or back, in a word that counts as a token

_LONG_WORD = re.compile(r"[0-9A-Za-z_-]{12,}")
_MOMENT = re.compile(
    r"(?<![0-9:])(?:[01]?[0-9]|2[0-3])[:h][0-5][0-9](?![0-9])|\b[0-9]{1,2} ?[ap]\.?m\b"
    r"|\b[0-9]+ [a-z]+ (?:ago|geleden|fa|atrás)\b|\b(?:vor|il y a|hace|há) [0-9]+\b"
    r"|[0-9][.,][0-9]+ ?s(?:ec|ek|\b)|[0-9] ?ms\b",
    re.IGNORECASE,
)
_AUDIENCES = """
    online users visitors visits guests viewers viewing watching views hits clicks
    benutzer nutzer besucher gäste aufrufe zugriffe zuschauer utilisateurs visiteurs invités connectés vues visites
    usuarios visitantes invitados visitas conectados utenti visitatori ospiti visite visualizzazioni usuários
    convidados visualizações gebruikers bezoekers gasten weergaven
"""
_AUDIENCE = frozenset(_AUDIENCES.split())
_NO_LETTER = re.compile(r"[\W\d_]+")
_TURN = re.compile(r"(?<=[0-9])(?=[A-Za-z])|(?<=[A-Za-z])(?=[0-9])")


def is_of_machine(numbers: str) -> bool:
    """Whether a text whose numbers differ is of a kind that machines put on pages and nobody waits for."""
    return is_token(numbers) or tells_moment(numbers) or counts_audience(numbers)


def is_token(text: str) -> bool:
    """Whether a text holds a word that nobody reads: a long one of letters and digits in turns, such as a request's
    number or a session's name.

    >>> is_token("Request 3fa9c81b77d20e4a"), is_token("12,345,678,901 views of Chapter12")
    (True, False)
    """
    return any(len(_TURN.findall(word)) >= MIN_TURNS for word in _LONG_WORD.findall(text))


def tells_moment(text: str) -> bool:
    """Whether a text tells a time of day, how long something is ago, or how long a machine took.

    >>> [tells_moment(text) for text in ("It is 12:04", "3 pm", "5 minutes ago", "made in 0.12 seconds")]
    [True, True, True, True]
    >>> [tells_moment(text) for text in ("Score 12:4", "3 crowns", "2.5 stars")]
    [False, False, False]
    """
    return _MOMENT.search(text) is not None


def counts_audience(text: str) -> bool:
    """Whether a text counts those who look at the page or the site.

    >>> [counts_audience(text) for text in ("1,204 users online", "37 Besucher", "37 crowns", "37 members")]
    [True, True, False, False]
    """
    return not _AUDIENCE.isdisjoint(_NO_LETTER.split(text.lower()))
