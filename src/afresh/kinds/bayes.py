"""From criteria to kinds: a Bayes classifier over what the network says and what pages say of themselves.

The network's probabilities are one criterion; the type that a page's JSON-LD names, its og:type, and what generated it
are the others. Each has a power, learned with the tables: criteria that repeat each other count less than their
number, and the probabilities that come out are those that come true. A criterion that a page is silent about is one of
its values, except where the page could not say it: its scripts were taken out.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from afresh.kinds.said import Said

KINDS = ("article", "service", "forum", "product", "listing", "collection", "documentation")
SILENT, OTHER = "", "other"

# The types of schema.org that tell a kind, in groups; the first group that a page names one of counts.
_STATED = {
    "discussion": "discussionforumposting qapage question answer socialmediaposting",
    "collection": "collectionpage offercatalog productcollection searchresultspage",
    "product": "product productgroup productmodel individualproduct book vehicle videogame softwareapplication",
    "list": "itemlist",
    "technical": "techarticle apireference howto",
    "news": "newsarticle reportagenewsarticle analysisnewsarticle liveblogposting",
    "posting": "blogposting",
    "article": "article report scholarlyarticle review recipe opinionnewsarticle advertisercontentarticle",
    "service": "service localbusiness course event governmentservice professionalservice medicalbusiness "
    "educationaloccupationalprogram webapplication financialproduct",
    "questions": "faqpage",
    "page": "webpage website organization breadcrumblist",
}
STATED = (SILENT, OTHER, *_STATED)
OG_TYPES = (SILENT, OTHER, "article", "website", "product", "product.group", "product.item", "object", "profile")
_GENERATORS = """
wordpress drupal joomla wix shopify discourse xenforo vbulletin phpbb mediawiki hugo jekyll ghost docusaurus sphinx
mkdocs
gitbook vitepress woocommerce elementor site powered
"""
GENERATORS = (SILENT, OTHER, *_GENERATORS.split())
VALUES: Mapping[str, tuple[str, ...]] = {"stated": STATED, "og_type": OG_TYPES, "generator": GENERATORS}
_OF = {name: group for group, names in reversed(_STATED.items()) for name in names.split()}
_RANK = {group: rank for rank, group in enumerate(_STATED)}
PRIOR_PAGES = 6.0  # pages of each kind, with the values of all pages, that a table begins with

Floats = NDArray[np.float64]


def values(said: Said) -> tuple[int, ...]:
    """The value of each criterion of `VALUES`; −1 where the page could not say."""
    groups = sorted({_OF[name] for name in said.types if name in _OF}, key=_RANK.__getitem__)
    stated = groups[0] if groups else OTHER if said.types else SILENT
    found = (stated, said.og_type, said.generator)
    places = [
        names.index(value) if value in names else names.index(OTHER)
        for value, names in zip(found, VALUES.values(), strict=True)
    ]
    if stated == SILENT and not said.scripts:
        places[0] = -1
    return tuple(places)


@dataclass(frozen=True, slots=True)
class Bayes:
    """The classifier: for each criterion how much likelier its values are under each kind, in logarithms."""

    tables: tuple[Floats, ...]  # value × kind
    powers: Floats  # of the network, then of each table

    def logits(self, network: NDArray[np.floating], found: tuple[int, ...]) -> Floats:
        """What speaks for each kind: the network's logarithms and the criteria's, each times its power."""
        total = np.asarray(network, np.float64) * self.powers[0]
        for place, table, power in zip(found, self.tables, self.powers[1:], strict=True):
            if place >= 0:
                total = total + power * table[place]
        return np.asarray(total)


def tables(found: NDArray[np.int64], kinds: NDArray[np.int64]) -> tuple[Floats, ...]:
    """The tables of pages with known kinds; `found` has a row for each page, as `values` gives it."""
    made = []
    for criterion, names in enumerate(VALUES.values()):
        own = found[:, criterion]
        counts = np.zeros((len(names), len(KINDS)))
        np.add.at(counts, (own[own >= 0], kinds[own >= 0]), 1.0)
        overall = (counts.sum(axis=1) + 1.0) / (counts.sum() + len(names))
        shares = (counts + PRIOR_PAGES * overall[:, None]) / (counts.sum(axis=0) + PRIOR_PAGES)
        made.append(np.log(shares / overall[:, None]))
    return tuple(made)
