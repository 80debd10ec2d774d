"""All models together, compiled: each move is foretold by all, counted by all, and teaches how far to trust each.

The weights of the models follow how well each has foretold, on each site apart and by how much is known of the page:
every move is counted for each model by the share that it has in what the mixture foretold of it. That is one step of
expectation and maximisation of the likelihood, so the weights tend to those of the least log loss.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from afresh.estimate.paths.borrowing import borrowing
from afresh.estimate.paths.counts import (
    count,
    counted,
    found,
    links_of,
    page_key,
    pair_key,
    site_key,
)
from afresh.estimate.paths.layout import (
    ABOUT,
    AGAIN,
    BACK,
    CLICKS,
    ELSEWHERE,
    FORETOLD,
    LINK,
    LINKS,
    LOSSES,
    MAX_CANDIDATES,
    MAX_SUCCESSORS,
    MODELS,
    NETWORK,
    OFF,
    ON,
    ORDER_1,
    ORDER_2,
    PAGES,
    PLACE_CLASSES,
    REQUESTS,
    SHOWN,
    TRAIL,
    UNIFORM,
    WEIGHTS,
    Tables,
)
from afresh.estimate.paths.user import (
    BELIEF,
    PLACE_SIZE,
    SHARES,
    TOGETHER,
    WAYS,
    attraction,
    cell_of,
    chances,
    learn,
    look,
    note_fame,
    seen_before,
)
from afresh.value.compiled import compiled

Floats = NDArray[np.float64]
Numbers = NDArray[np.int32]

COUNT_MODELS = len(MODELS)
FADE = 0.9995  # of the shares that make the weights, with each move
_KNOWN_LITTLE, _KNOWN_WELL = 4.0, 16.0


@borrowing
def known(total: float) -> int:
    """The class of how often a context was met."""
    if total <= 0.0:
        return 0
    return 1 if total < _KNOWN_LITTLE else 2 if total < _KNOWN_WELL else 3


@borrowing
def place_class(place: int) -> int:
    """The class of the place of a link."""
    at, border = 0, 1
    while at < PLACE_CLASSES - 1 and place >= border:
        border *= 2
        at += 1
    return at


@borrowing
def often(tables: Tables, page: int) -> float:
    """How probable a page is without knowing where its reader is."""
    row = tables.sites[tables.pages[page].site]
    return float((tables.pages[page].count + 0.5) / (row[REQUESTS] + 0.5 * row[PAGES]))


@borrowing
def _context(tables: Tables, key: int) -> tuple[int, float, float]:
    """(where it is, how often it was met, how many pages came next)"""
    at = found(tables.contexts, key)
    if at < 0:
        return -1, 0.0, 0.0
    return at, float(tables.contexts[at].total), float(tables.contexts[at].distinct)


@borrowing
def _contexts(tables: Tables, trail: Numbers) -> tuple[tuple[int, float, float], tuple[int, float, float]]:
    """Those of the page, and of the last two."""
    one = _context(tables, page_key(trail[0]))
    return one, _context(tables, pair_key(trail[1], trail[0])) if trail[1] >= 0 else (-1, 0.0, 0.0)


@borrowing
def _backed_off(tables: Tables, context: tuple[int, float, float], page: int, otherwise: float) -> float:
    """As counted, and by what is known otherwise in the share of pages that come for the first time (Witten, Bell)."""
    at, total, distinct = context
    if at < 0:
        return otherwise
    return float((counted(tables.contexts, tables.cells, at, page) + distinct * otherwise) / (total + distinct))


@borrowing
def _links_together(tables: Tables, page: int) -> float:
    """What all links of a page weigh by their places."""
    row = tables.sites[tables.pages[page].site]
    total, links, begin = 0.0, links_of(tables, page)[1], 0
    for kind in range(PLACE_CLASSES):
        end = min(1 << kind, links) if kind < PLACE_CLASSES - 1 else links
        total += (end - begin) * row[CLICKS + kind] / row[SHOWN + kind]
        begin = end
    return total


@borrowing
def _by_links(tables: Tables, trail: Numbers, page: int, usual: float) -> float:
    row = tables.sites[tables.pages[trail[0]].site]
    start, links = links_of(tables, trail[0])
    if links == 0:
        return usual
    followed = row[ON] / (row[ON] + row[OFF])
    weight = 0.0
    for at in range(links):
        if tables.ring[start + at] == page:
            kind = place_class(at)
            weight += row[CLICKS + kind] / row[SHOWN + kind]
    return float(followed * weight / _links_together(tables, trail[0]) + (1.0 - followed) * usual)


@borrowing
def _learn_links(tables: Tables, trail: Numbers, page: int) -> None:
    row = tables.sites[tables.pages[trail[0]].site]
    start, links = links_of(tables, trail[0])
    place = -1
    for at in range(links - 1, -1, -1):
        if tables.ring[start + at] == page:
            place = at
    if links:
        row[ON if place >= 0 else OFF] += 1.0
    if place >= 0:
        together, begin = _links_together(tables, trail[0]), 0
        for kind in range(PLACE_CLASSES):
            end = min(1 << kind, links) if kind < PLACE_CLASSES - 1 else links
            row[SHOWN + kind] += (end - begin) / together
            begin = end
        row[CLICKS + place_class(place)] += 1.0


@borrowing
def foretold(
    tables: Tables, trail: Numbers, about: Floats, page: int, each: Floats, place: Floats, ways: Floats
) -> int:
    """How probable each model takes a page to be next; the place of the weights that hold here."""
    usual = often(tables, page)
    one, two = _contexts(tables, trail)
    each[ORDER_1] = _backed_off(tables, one, page, usual)
    each[ORDER_2] = _backed_off(tables, two, page, each[ORDER_1])
    each[LINKS] = _by_links(tables, trail, page, usual)
    look(tables, trail, about, place)
    each[NETWORK] = chances(tables, trail, place, page, usual, ways)
    each[UNIFORM] = 1.0 / tables.sites[tables.pages[page].site, PAGES]
    return WEIGHTS + (4 * known(two[1]) + known(one[1])) * COUNT_MODELS


@compiled
def move(tables: Tables, reader: int, page: int, dwell: float) -> None:
    """A reader comes to a page, after so many seconds at the one before: all models learn."""
    trail, about = tables.trails[reader], tables.abouts[reader]
    site = tables.pages[page].site
    row = tables.sites[site]
    if trail[0] >= 0 and tables.pages[trail[0]].site == site:
        each, place, ways = np.empty(COUNT_MODELS), np.empty(PLACE_SIZE), np.empty(ABOUT * WAYS)
        at = foretold(tables, trail, about, page, each, place, ways)
        together = mixed = 0.0
        for model in range(COUNT_MODELS):
            together += row[at + model]
            mixed += row[at + model] * each[model]
        for model in range(COUNT_MODELS):
            row[LOSSES + model] -= np.log(each[model])
            row[at + model] = FADE * row[at + model] + row[at + model] * each[model] / mixed
        row[LOSSES + COUNT_MODELS] -= np.log(mixed / together)
        row[FORETOLD] += 1.0
        learn(tables, trail, about, place, page, ways, dwell, trail[1] < 0)
        _learn_links(tables, trail, page)
        count(tables, page_key(trail[0]), page, 1.0)
        if trail[1] >= 0:
            count(tables, pair_key(trail[1], trail[0]), page, 1.0)
    count(tables, site_key(site), page, 1.0)
    tables.pages[page].count += 1.0
    row[REQUESTS] += 1.0
    note_fame(tables, page)
    arrive(tables, reader, page)


@borrowing
def arrive(tables: Tables, reader: int, page: int) -> None:
    """A reader is at a page now, and nobody learns by that."""
    trail = tables.trails[reader]
    for at in range(TRAIL - 1, 0, -1):
        trail[at] = trail[at - 1]
    trail[0] = page


@compiled
def leave(tables: Tables, reader: int) -> None:
    """A session ends: what comes next is a new one."""
    tables.trails[reader, :] = -1
    tables.abouts[reader, :] = 1.0 / ABOUT


@borrowing
def _add(tables: Tables, page: int, score: float, pages: Numbers, number: int) -> int:
    if tables.scores[page] == 0.0:
        if number == pages.size or tables.pages[page].site < 0:
            return number
        pages[number] = page
        number += 1
    tables.scores[page] += max(score, 1e-300)
    return number


@borrowing
def _add_list(tables: Tables, at: int, factor: float, most: int, pages: Numbers, number: int) -> int:
    if at >= 0 and factor > 0.0:
        cell = tables.contexts[at].head
        while cell >= 0 and most > 0:
            most -= 1
            number = _add(tables, tables.cells[cell].page, factor * tables.cells[cell].count, pages, number)
            cell = tables.cells[cell].next
    return number


@compiled
def _add_network(tables: Tables, trail: Numbers, about: Floats, share: float, pages: Numbers, number: int) -> Any:
    """What the network foretells; and the share that it leaves to what is usual."""
    row = tables.sites[tables.pages[trail[0]].site]
    start, links = links_of(tables, trail[0])
    place = np.empty(PLACE_SIZE)
    look(tables, trail, about, place)
    seen, rest = seen_before(trail), 0.0
    for now in range(ABOUT):
        believed, shares = share * place[BELIEF + now], SHARES + now * WAYS
        rest += believed * place[shares + ELSEWHERE]
        if trail[1] >= 0:
            number = _add(tables, trail[1], believed * place[shares + BACK], pages, number)
        for at in range(seen):
            number = _add(tables, trail[2 + at], believed * place[shares + AGAIN] / seen, pages, number)
    for at in range(links):
        page = tables.ring[start + at]
        cell, score = cell_of(tables, page, at), 0.0
        for now in range(ABOUT):
            taken = attraction(row, now, cell) / place[TOGETHER + now]
            score += share * place[BELIEF + now] * place[SHARES + now * WAYS + LINK] * taken
        number = _add(tables, page, score, pages, number)
    return number, rest


@compiled
def forecast(tables: Tables, reader: int, alone: int, chosen: Numbers, probable: Floats) -> int:
    """The most probable next pages of a reader, the most probable first, by all models or by one `alone`.

    As many as there is room for, or fewer: how many.
    """
    trail, about = tables.trails[reader], tables.abouts[reader]
    if trail[0] < 0:
        return 0
    site = tables.pages[trail[0]].site
    row = tables.sites[site]
    one, two = _contexts(tables, trail)
    weights, place = np.zeros(COUNT_MODELS), WEIGHTS + (4 * known(two[1]) + known(one[1])) * COUNT_MODELS
    if alone >= 0:
        weights[alone] = 1.0
    else:
        weights[:] = row[place : place + COUNT_MODELS] / row[place : place + COUNT_MODELS].sum()
    pages, number = np.empty(MAX_CANDIDATES, np.int32), 0
    # What each model backs off to is handed on to the next: the share of what is usual in the end.
    first, rest = weights[ORDER_1], 0.0
    if two[0] >= 0:
        number = _add_list(tables, two[0], weights[ORDER_2] / (two[1] + two[2]), MAX_SUCCESSORS, pages, number)
        first += weights[ORDER_2] * two[2] / (two[1] + two[2])
    else:
        first += weights[ORDER_2]
    if one[0] >= 0:
        number = _add_list(tables, one[0], first / (one[1] + one[2]), MAX_SUCCESSORS, pages, number)
        rest += first * one[2] / (one[1] + one[2])
    else:
        rest += first
    start, links = links_of(tables, trail[0])
    if weights[LINKS] > 0.0 and links:
        followed = row[ON] / (row[ON] + row[OFF])
        factor = weights[LINKS] * followed / _links_together(tables, trail[0])
        for at in range(links):
            kind = place_class(at)
            number = _add(
                tables, tables.ring[start + at], factor * row[CLICKS + kind] / row[SHOWN + kind], pages, number
            )
        rest += weights[LINKS] * (1.0 - followed)
    else:
        rest += weights[LINKS]
    if weights[NETWORK] > 0.0:
        number, left = _add_network(tables, trail, about, weights[NETWORK], pages, number)
        rest += left
    if rest > 0.0:  # those that are asked for most come first there: what is behind would not be chosen
        usual = found(tables.contexts, site_key(site))
        number = _add_list(tables, usual, 1e-300, 2 * chosen.size, pages, number)
    return _select(tables, rest, weights[UNIFORM] / row[PAGES], pages[:number], chosen, probable)


@borrowing
def _select(tables: Tables, rest: float, even: float, pages: Numbers, chosen: Numbers, probable: Floats) -> int:
    """The best of the candidates, in order; all scores are 0 again."""
    number = 0
    for page in pages:
        score = tables.scores[page] + rest * often(tables, page) + even
        tables.scores[page] = 0.0
        if number < chosen.size:
            number += 1
        elif score <= probable[number - 1]:
            continue
        at = number - 1
        while at > 0 and probable[at - 1] < score:
            probable[at], chosen[at] = probable[at - 1], chosen[at - 1]
            at -= 1
        probable[at], chosen[at] = score, page
    if number == 0 and even > 0.0:  # nothing is known: any will do
        for page in range(min(chosen.size, tables.pages.size)):
            if tables.pages[page].site >= 0:
                chosen[number], probable[number] = page, even
                number += 1
    return number
