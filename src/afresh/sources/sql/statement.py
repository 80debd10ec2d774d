"""A query as text: which parameters it names, whether it says in which order its rows come, and how a driver wants it.

Parameters are written `:name`, whatever the database; text, comments, quoted names, casts (`::`) and slices are left
alone.
"""

import re
from dataclasses import dataclass

from afresh.errors import ConfigError

MAX_SQL = 20_000  # characters
MAX_PARAMETERS = 50
_BEGINS = ("SELECT", "WITH", "VALUES", "TABLE")
# What stands in a query, the first that fits: text that is left alone, then what is looked for.
_PART = re.compile(
    r"""(?P<alone>--[^\n]*|'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\$(?P<tag>[A-Za-z_]*)\$.*?\$(?P=tag)\$|::)
      |(?P<comment>/\*)
      |(?<![\w:]):(?P<name>[A-Za-z_]\w{0,62})(?!\w)
      |(?P<bracket>[()\[\]])
      |(?P<word>[A-Za-z_][\w$]*)
      |(?P<end>;)""",
    re.DOTALL | re.VERBOSE,
)
_ESCAPE_STRING = re.compile(r"'(?:[^'\\]|\\.|'')*'", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Statement:
    """One query that only reads.

    >>> query = Statement.of("select name from t where day = :day and note <> ':no' order by 1")
    >>> query.parameters, query.ordered, query.text("dollar")
    (('day',), True, "select name from t where day = $1 and note <> ':no' order by 1")
    """

    sql: str
    parameters: tuple[str, ...]  # by name, each once, in the order of their first use
    ordered: bool  # whether the outermost query says ORDER BY
    _places: tuple[tuple[int, int, str], ...]

    @classmethod
    def of(cls, sql: str) -> "Statement":
        """Read it; ConfigError if it is more than one statement, or one that does not begin like a query."""
        sql = sql.strip().rstrip(";").rstrip()
        if len(sql) > MAX_SQL or "\0" in sql:
            raise ConfigError(f"A query has more than {MAX_SQL:,} characters.", hint="Make it a view of the database.")
        seen = _Scan(sql)
        words, names = seen.words, tuple(dict.fromkeys(name for _, _, name in seen.places))
        if not words or words[0] not in _BEGINS:
            raise ConfigError(
                f"A query begins with SELECT, WITH, VALUES or TABLE, not with {sql[:30]!r}.",
                hint="Only what reads can be kept fresh.",
            )
        if len(names) > MAX_PARAMETERS:
            raise ConfigError(f"A query has more than {MAX_PARAMETERS} parameters.", hint="Use fewer.")
        return cls(sql, names, seen.ordered, tuple(seen.places))

    def text(self, style: str) -> str:
        """The query as a driver wants it: "named", "dollar" ($1), or a `paramstyle` of PEP 249."""
        made, position = [], 0
        escape = style in ("format", "pyformat")
        for nth, (start, end, name) in enumerate(self._places):
            piece = self.sql[position:start]
            made.append(piece.replace("%", "%%") if escape else piece)
            number = self.parameters.index(name) + 1
            styles = {"dollar": f"${number}", "named": f":{name}", "qmark": "?", "format": "%s"}
            styles |= {"numeric": f":{nth + 1}", "pyformat": f"%({name})s"}
            made.append(styles[style])
            position = end
        piece = self.sql[position:]
        return "".join([*made, piece.replace("%", "%%") if escape else piece])

    def arguments(self, style: str, values: dict[str, object]) -> dict[str, object] | list[object]:
        """The values as a driver wants them beside `text(style)`."""
        if style in ("named", "pyformat"):
            return {name: values[name] for name in self.parameters}
        if style == "dollar":
            return [values[name] for name in self.parameters]
        return [values[name] for _, _, name in self._places]


class _Scan:
    """One pass over a query: where parameters are, and the words of its outermost level."""

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self.places: list[tuple[int, int, str]] = []
        self.words: list[str] = []
        self.ordered = False
        depth = position = 0
        while (found := _PART.search(sql, position)) is not None:
            position = found.end()
            if found["comment"]:
                position = _after_comment(sql, position)
            elif found["bracket"]:
                depth += 1 if found["bracket"] in "([" else -1
            elif found["name"]:
                if not _is_slice(sql, found.start()):
                    self.places.append((found.start(), position, found["name"]))
            elif found["word"]:
                position = self._word(found["word"].upper(), position, depth)
            elif found["end"]:
                raise ConfigError("A query is one statement, and this is more.", hint="Leave out what follows the ';'.")

    def _word(self, word: str, position: int, depth: int) -> int:
        if word == "E" and self.sql[position : position + 1] == "'":
            text = _ESCAPE_STRING.match(self.sql, position)
            return text.end() if text else position
        if not self.words or not depth:
            self.words.append(word)
            self.ordered |= not depth and self.words[-2:] == ["ORDER", "BY"]
        return position


def _after_comment(sql: str, position: int) -> int:
    """Behind a comment that began before `position`; comments may hold comments."""
    depth = 1
    while depth and (found := re.compile(r"/\*|\*/").search(sql, position)) is not None:
        depth += 1 if found[0] == "/*" else -1
        position = found.end()
    return position if not depth else len(sql)


def _is_slice(sql: str, start: int) -> bool:
    """Whether a colon stands between the bounds of an array, as in a[i:j]."""
    before = sql[:start].rstrip()
    return bool(before) and before[-1] in "])" and "[" in before and before.rfind("[") > before.rfind("]")
