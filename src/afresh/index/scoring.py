"""What the index would score a page for a query, from the page's words alone: where one page is looked at, not all.

The formula is FTS5's BM25. A test compares the two.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import log

from afresh.index.documents import Indexed
from afresh.index.fulltext import Weights, site_words
from afresh.index.queries import COLUMNS, All, Any, Node, Query, Term
from afresh.index.words import Tokenizer

SATURATION, LENGTH_SHARE = 1.2, 0.75  # k1 and b
LEAST_RARITY = 1e-6  # of words that most pages have

Places = Mapping[str, list[int]]  # where each word of a column stands


@dataclass(frozen=True, slots=True)
class Counted:
    """The words of one page: by column, where each of those stands that somebody asked about."""

    columns: tuple[Places, ...]  # in the order of `COLUMNS`
    length: int  # words of all columns


@dataclass(frozen=True, slots=True)
class Collection:
    """What is known of all pages together."""

    pages: int = 1
    mean_length: float = 1.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """A query whose terms are told apart into words, and how rare each term is."""

    query: Query
    words: Mapping[Term, tuple[str, ...]]
    rarity: Mapping[Term, float] = field(default_factory=dict)

    @property
    def heads(self) -> list[tuple[str, bool]]:
        """Words, each with whether it is only a beginning, of which a page must have one: else it is not found.

        Where all of several terms must be there, the rarest stands for them.
        """
        return self._heads(self.query.root)

    def _heads(self, node: Node) -> list[tuple[str, bool]]:
        if isinstance(node, Term):
            words = self.words.get(node, ())
            return [(words[0], node.prefix and len(words) == 1)] if words else []
        parts = [each for each in (self._heads(part) for part in node.of) if each]
        if isinstance(node, Any):
            return [head for part in parts for head in part]
        rare = {words[0]: self.rarity.get(term, 0.0) for term, words in self.words.items() if words}
        return max(parts, key=lambda part: min(rare.get(word, 0.0) for word, _ in part), default=[])


def wanted(query: Query, tokenizer: Tokenizer) -> Wanted:
    """A query ready to be scored, once it is known how rare its terms are."""
    return Wanted(query, {term: tuple(tokenizer.words(term.words)) for term in _every_term(query.root)})


def rarity(matching: int, pages: int) -> float:
    """What a term counts of which so many pages have at least one.

    >>> rarity(1, 100) > rarity(10, 100) > rarity(60, 100) == LEAST_RARITY
    True
    """
    return max(log((pages - matching + 0.5) / (matching + 0.5)), LEAST_RARITY)


def counted(
    content: Indexed,
    host: str,
    tokenizer: Tokenizer,
    of_interest: frozenset[str] | None = None,
    beginnings: tuple[str, ...] = (),
) -> Counted:
    """The words of a page; only those `of_interest` and with these `beginnings`, if any are given."""
    columns, length = [], 0
    for text in (site_words(host), content.title, content.headings, content.text):
        places: dict[str, list[int]] = {}
        words = tokenizer.words(text)
        for place, word in enumerate(words):
            if of_interest is None or word in of_interest or (beginnings and word.startswith(beginnings)):
                places.setdefault(word, []).append(place)
        length += len(words)
        columns.append(places)
    return Counted(tuple(columns), length)


def score(asked: Wanted, page: Counted, collection: Collection, weights: Weights) -> float:
    """What a page's text scores for a query; 0: it is not found."""
    found = {term: _weight(term, words, page, weights) for term, words in asked.words.items() if words}
    if not _matches(asked.query.root, found):
        return 0.0
    mean = max(collection.mean_length, 1e-9)
    room = SATURATION * (1.0 - LENGTH_SHARE + LENGTH_SHARE * page.length / mean)
    total = 0.0
    for term in asked.query.terms:  # each as often as it is asked for
        weight = (found.get(term) or (0, 0.0))[1]
        total += asked.rarity.get(term, LEAST_RARITY) * weight * (SATURATION + 1.0) / (weight + room)
    return total


def _weight(term: Term, words: tuple[str, ...], page: Counted, weights: Weights) -> tuple[int, float]:
    """(how often a term stands on a page, the same by the weights of the columns)."""
    count, weight = 0, 0.0
    for name, places, worth in zip(COLUMNS, page.columns, (0.0, weights.title, weights.headings, 1.0), strict=True):
        if name == term.column or (not term.column and name != "site"):
            here = _times(words, places, prefix=term.prefix)
            count += here
            weight += here * worth
    return count, weight


def _times(words: tuple[str, ...], places: Places, *, prefix: bool) -> int:
    """How often some words stand beside each other."""
    first, *others = (_starting(word, places) if prefix and nth == len(words) - 1 else places.get(word, ())
                      for nth, word in enumerate(words))  # fmt: skip
    if not others:
        return len(first)
    rest = [frozenset(each) for each in others]
    return sum(all(place + 1 + nth in each for nth, each in enumerate(rest)) for place in first)


def _starting(beginning: str, places: Places) -> list[int]:
    return [place for word, some in places.items() if word.startswith(beginning) for place in some]


def _matches(node: Node, found: Mapping[Term, tuple[int, float]]) -> bool:
    match node:
        case Term():
            return node not in found or found[node][0] > 0  # what has no words is as if it were not said
        case Any(of):
            return any(_matches(each, found) for each in of)
        case All(of, without):
            no = (each for each in without if not isinstance(each, Term) or each in found)
            return all(_matches(each, found) for each in of) and not any(_matches(each, found) for each in no)


def _every_term(node: Node) -> Iterable[Term]:
    if isinstance(node, Term):
        yield node
    else:
        for each in (*node.of, *(node.without if isinstance(node, All) else ())):
            yield from _every_term(each)
