"""What people search for: words, "phrases", prefixes, OR, NOT, and sites, as a tree; bad ones get a sentence."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import xxhash

from afresh.errors import InputError
from afresh.index.documents import spaced

MAX_QUERY_CHARACTERS = 400
MAX_TERMS = 32
MAX_DEPTH = 10  # of parentheses
COLUMNS = ("site", "title", "headings", "text")
SEARCHED = "{title headings text}"
SITE_END = "0siteend0"  # the word behind the last label of every host, so that a domain is the end of a name

_PART = re.compile(
    r"\s*(?:(?P<sign>[()])|(?P<minus>-)(?=[^\s-])|(?P<field>site|title):|"
    r'"(?P<phrase>[^"]*)"(?P<more>\*)?|(?P<word>[^\s()"]+))'
)
_HINT = 'Write words, "a phrase", begin*, a OR b, -without, site:example.com.'


@dataclass(frozen=True, slots=True)
class Term:
    """Words that stand beside each other; of a prefix, the last is only a beginning."""

    text: str
    prefix: bool = False
    column: str = ""  # "": title, headings and text

    def __str__(self) -> str:
        field = f"{self.column}:" if self.column else ""
        plain = self.column == "site" or (re.fullmatch(r"\w+", self.text) and self.text not in ("OR", "AND", "NOT"))
        return f"{field}{self.text if plain else chr(34) + self.text + chr(34)}{'*' if self.prefix else ''}"

    @property
    def words(self) -> str:
        """As it stands in the index, before its words are told apart."""
        if self.column == "site":
            at_port = without_port(self.text) != self.text
            return word_of_host(self.text) if at_port else f"{' '.join(self.text.split('.'))} {SITE_END}"
        return spaced(self.text)

    def expression(self) -> str:
        """The same for FTS5."""
        where = f"{{{self.column}}}" if self.column else SEARCHED
        return f'{where} : "{self.words}"{" *" if self.prefix else ""}'


@dataclass(frozen=True, slots=True)
class All:
    """All of some, and none of others."""

    of: tuple["Node", ...]
    without: tuple["Node", ...] = ()

    def __str__(self) -> str:
        return " ".join([*map(_inside, self.of), *(f"-{_inside(each)}" for each in self.without)])

    def expression(self) -> str:
        """The same for FTS5."""
        wanted = " AND ".join(f"({each.expression()})" for each in self.of)
        return "".join([f"({wanted})", *(f" NOT ({each.expression()})" for each in self.without)])


@dataclass(frozen=True, slots=True)
class Any:
    """One of several at least."""

    of: tuple["Node", ...]

    def __str__(self) -> str:
        return " OR ".join(map(_inside, self.of))

    def expression(self) -> str:
        """The same for FTS5."""
        return " OR ".join(f"({each.expression()})" for each in self.of)


Node = Term | All | Any


def _inside(node: Node) -> str:
    return str(node) if isinstance(node, Term) else f"({node})"


@dataclass(frozen=True, slots=True)
class Query:
    """A query that was understood."""

    root: Node
    text: str = field(default="", compare=False)  # the same, always written in the same way

    def __str__(self) -> str:
        return self.text

    @property
    def expression(self) -> str:
        """The same for FTS5."""
        return self.root.expression()

    @property
    def terms(self) -> list[Term]:
        """What is looked for; what must not be there is left out."""
        return list(_terms(self.root))


def _terms(node: Node) -> Iterator[Term]:
    if isinstance(node, Term):
        yield node
    else:
        for each in node.of:
            yield from _terms(each)


def parse(text: str, *, host: str = "") -> Query:
    """What a text searches for, on one host or domain only if that is given; InputError says what is wrong with it.

    >>> str(parse('Ferry  "time table" -winter OR site:example.com har*'))
    '(Ferry "time table" -winter) OR (site:example.com har*)'
    """
    if len(text) > MAX_QUERY_CHARACTERS:
        raise InputError(f"The query is longer than {MAX_QUERY_CHARACTERS} characters.", hint="Use fewer words.")
    if text.count('"') % 2:
        raise InputError("A quotation mark is not closed.", hint='Write "a phrase" with two of them.')
    root = _Parser(text.encode("utf-8", "replace").decode().replace("\0", " ")).whole()
    if host:
        root = All((root, _site(host)))
    return Query(root, str(root))


def without_port(host: str) -> str:
    """The name of a host alone.

    >>> without_port("127.0.0.1:8000"), without_port("[::1]:8000"), without_port("[::1]")
    ('127.0.0.1', '[::1]', '[::1]')
    """
    name, _, port = host.rpartition(":")
    return name if port.isdecimal() and (":" not in name or name.endswith("]")) else host


def word_of_host(host: str) -> str:
    """One word that only this host at this port has; its digit at the end keeps it from being stemmed."""
    return f"0host{xxhash.xxh3_64_hexdigest(host.lower().encode('utf-8', 'replace'))}0"


def _site(host: str) -> Term:
    labels = [label for label in host.lower().removeprefix("*.").strip(".").split(".") if label]
    if not labels or not all(re.fullmatch(r"[\w:-]+", label) for label in labels):
        raise InputError(f"{host[:80]!r} is not a site.", hint="Write it like site:example.com.")
    return Term(".".join(labels), column="site")


class _Parser:
    """Reads a query from left to right."""

    def __init__(self, text: str) -> None:
        self._parts = [match for match in _PART.finditer(text) if match[0].strip()]
        self._at = self._terms = 0
        self._empty = False  # something was there that has no letter and no digit

    def whole(self) -> Node:
        root = self._any(0)
        if self._at < len(self._parts):
            raise InputError("A parenthesis is closed that was not opened.", hint=_HINT)
        if root is None:
            raise InputError("The query has nothing to search for.", hint=_HINT)
        return root

    def _peek(self, *words: str) -> bool:
        return self._at < len(self._parts) and self._parts[self._at][0].strip() in words

    def _any(self, depth: int) -> Node | None:
        if depth > MAX_DEPTH:
            raise InputError(f"The query has more than {MAX_DEPTH} parentheses within each other.", hint=_HINT)
        found = [self._all(depth)]
        while self._peek("OR"):
            self._at += 1
            if self._at == len(self._parts) or self._peek("OR", ")"):
                raise InputError("Nothing follows after an OR.", hint=_HINT)
            found.append(self._all(depth))
        some = tuple(each for each in found if each is not None)
        return (some[0] if len(some) == 1 else Any(some)) if some else None

    def _all(self, depth: int) -> Node | None:
        wanted: list[Node] = []
        without: list[Node] = []
        while self._at < len(self._parts) and not self._peek("OR", ")"):
            if self._peek("AND"):
                self._at += 1
                continue
            no = self._peek("NOT", "-")
            self._at += no
            if no and (self._at == len(self._parts) or self._peek("OR", ")")):
                raise InputError("Nothing follows after a NOT.", hint=_HINT)
            node = self._one(depth)
            if node is not None:
                (without if no else wanted).append(node)
        if without and not wanted:
            raise InputError("The query says only what must not be there.", hint=_HINT)
        if len(wanted) == 1 and not without:
            return wanted[0]
        return All(tuple(wanted), tuple(without)) if wanted else None

    def _one(self, depth: int) -> Node | None:
        part = self._parts[self._at]
        self._at += 1
        if part["sign"] == "(":
            inside = self._any(depth + 1)
            if not self._peek(")"):
                raise InputError("A parenthesis is not closed.", hint=_HINT)
            self._at += 1
            return inside
        column = ""
        if part["field"]:
            column = part["field"]
            if self._at == len(self._parts) or not (self._parts[self._at]["word"] or self._parts[self._at]["phrase"]):
                raise InputError(f"Nothing follows after {column}:.", hint=_HINT)
            part = self._parts[self._at]
            self._at += 1
        return self._term(part, column)

    def _term(self, part: re.Match[str], column: str) -> Term | None:
        self._terms += 1
        if self._terms > MAX_TERMS:
            raise InputError(f"The query has more than {MAX_TERMS} words.", hint="Use fewer.")
        word, prefix = part["phrase"], bool(part["more"])
        if word is None:
            word = part["word"] or part[0].strip()
            word, prefix = word.rstrip("*"), word.endswith("*")
        if column == "site":
            return _site(word)
        word = " ".join(word.split())
        if re.search(r"[^\s*]\*+$", word):
            word, prefix = word.rstrip("*"), True  # "time ta*" means the same as "time ta"*
        if not any(character.isalnum() for character in word):
            return None  # signs alone are in no index
        return Term(word, prefix, column)
