"""How many true changes are counted, and how much noise, where the truth is known. Run with -s to see the figures."""

import json
import lzma
import os
import random
import re
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser

from afresh.sim.web.options import SiteOptions
from afresh.sim.web.render import Noise
from afresh.sim.web.site import Site
from afresh.types import Outcome
from visitor import Visitor

ROOT = Path(__file__).parents[2]
PAGES = Path(os.environ.get("AFRESH_DATA", ROOT.parent / "shared" / "data")) / "pages" / "page_types_dev.jsonl.xz"
VISITS, LEARNING = 16, 5  # visits of a page, and those after which noise is to be known
HOUR, DAY = 3600.0, 86_400.0


class Score:
    """What was counted, by what was true."""

    def __init__(self, name: str) -> None:
        self.name, self.counts = name, Counter[tuple[str, bool]]()

    def add(self, truth: str, outcome: Outcome) -> None:
        self.counts[truth, outcome is Outcome.CHANGED] += 1

    def share(self, truth: str) -> float:
        counted, not_counted = self.counts[truth, True], self.counts[truth, False]
        assert counted + not_counted >= 50, "too few to tell"
        return counted / (counted + not_counted)

    def __str__(self) -> str:
        shares = ", ".join(
            f"{truth} {self.share(truth):.2%} of {self.counts[truth, True] + self.counts[truth, False]}"
            for truth in sorted({truth for truth, _ in self.counts})
        )
        return f"{self.name}: counted of {shares}"


@pytest.mark.parametrize("every", [HOUR / 2, 4 * HOUR, DAY], ids=["half an hour", "four hours", "a day"])
def test_on_the_synthetic_web_changes_are_counted_and_noise_is_not(every: float) -> None:
    site = Site(SiteOptions(pages=400, hosts=40, seed=5, noise_share=0.6, noisy_text_share=0.3))
    visitor, versions, score = Visitor(), dict[int, int](), Score(f"synthetic web, every {every / HOUR:g} h")
    for nth in range(VISITS):
        for page in range(400):
            now = nth * every + page * 0.1
            version = site.version(page, now)
            if version < 0:
                continue
            body = site.body(page, version, moment=Noise(time=now, request=nth * 400 + page))
            before = visitor.pages[str(page)][1] if nth else b""
            outcome = visitor.visit(str(page), body, now, host=site.host(page)).outcome
            if nth and version != versions[page]:
                score.add("changes", outcome)
            elif nth >= LEARNING and body != before:
                score.add("noise", outcome)
            elif nth and body == before:
                assert outcome is Outcome.UNCHANGED
            versions[page] = version
    print(score)
    assert score.share("changes") >= 0.99
    assert score.share("noise") <= 0.02


# Real pages ----------------------------------------------------------------------------------------------------------

HIDDEN = "script, style, template, iframe, noembed, noframes, [hidden]"
ADS = ("Fresh coffee by post", "Learn the accordion", "Bicycle insurance", "A holiday by the lake", "Better pillows")
KINDS: dict[str, Callable[[int, float, random.Random], str]] = {
    "clock": lambda nth, now, rng: f"<div class=clock>Now {int(now)} seconds</div>",
    "counter": lambda nth, now, rng: f"<p>{1000 + nth * 3} views so far</p>",
    "users": lambda nth, now, rng: f"<div id=online>{rng.randrange(100, 10_000)} users online</div>",
    "token": lambda nth, now, rng: f"<span>Request {rng.getrandbits(64):016x}</span>",
    "advertisement": lambda nth, now, rng: f"<div class='ad-slot ad-{rng.randrange(99)}'>{rng.choice(ADS)}</div>",
    "teaser": lambda nth, now, rng: f"<aside id=teaser><a href=/t>{rng.choice(ADS)} {rng.choice(ADS)}</a></aside>",
}
SHIPS = ("harbour", "keeper", "storm", "quay", "lantern", "winter", "salt", "rope", "ferry", "gull", "anchor", "tide")
MORE_KINDS = KINDS | {
    "time": lambda nth, now, rng: f"<p>Local time {said(now, '%H:%M')}</p>",
    "half a day": lambda nth, now, rng: f"<div class=t>{said(now, '%I:%M %p')}</div>",
    "date": lambda nth, now, rng: f"<p>Printed {said(now, '%a %d %b %Y, %H:%M:%S')}</p>",
    "time taken": lambda nth, now, rng: f"<p>Made in {rng.uniform(0.01, 0.9):.3f} seconds by {rng.randrange(60)}</p>",
    "guests": lambda nth, now, rng: f"<p>{rng.randrange(90, 110)} guests and {rng.randrange(1, 30)} members online</p>",
    "countdown": lambda nth, now, rng: f"<p>The sale ends in {int(4e6 - now) // 60} minutes</p>",
    "quotation": lambda nth, now, rng: f"<blockquote>{' '.join(rng.choices(SHIPS, k=8))}</blockquote>",
}
ELEMENT = re.compile(r"<(p|li|h[1-6]|td|dd|a|span|div)\b[^<>]*>([^<>]*[a-z]{3,}[^<>]*)</\1>")
JOINT = re.compile(r"<(?:p|div|li|h2|h3|section|article|ul)\b")


def said(now: float, form: str) -> str:
    return datetime.fromtimestamp(1.79e9 + now, UTC).strftime(form)


def visible(html: str) -> str:
    """What a whole parser's tree shows, with blanks made one."""
    tree = LexborHTMLParser(html)
    for node in tree.css(HIDDEN):
        node.decompose()
    return " ".join(tree.root.text(separator=" ").split()) if tree.root else ""


def edited(html: str, rng: random.Random) -> str:
    """One true change at a random place: a word, a number, a paragraph that comes, goes or moves."""
    places = [match.span(2) for match in ELEMENT.finditer(html)]
    start, end = rng.choice(places)
    text, how = html[start:end], rng.randrange(4)
    if how == 0:
        words = text.split(" ")
        words[rng.randrange(len(words))] = f"edited{rng.getrandbits(20)}"
        return html[:start] + " ".join(words) + html[end:]
    if how == 1:
        return html[:start] + text + f" {rng.randrange(10_000)}" + html[end:]
    if how == 2:
        return html[:start] + html[end:]
    joint = rng.choice([match.start() for match in JOINT.finditer(html)] or [end])
    return html[:joint] + f"<p>A paragraph that was added, number {'x' * rng.randrange(1, 9)}.</p>" + html[joint:]


def real_pages(count: int) -> list[str]:
    by_type: dict[str, list[str]] = {}
    with lzma.open(PAGES, "rt", encoding="utf-8") as lines:
        for line in lines:
            page = json.loads(line)
            by_type.setdefault(page["type"], []).append(page["html"])
    usable = {
        kind: [html for html in pages if len(visible(html)) > 1500 and ELEMENT.search(html) and JOINT.search(html)]
        for kind, pages in by_type.items()
    }
    chosen: list[str] = []
    for nth in range(count):
        for pages in usable.values():
            chosen += pages[nth : nth + 1]
    return chosen[:count]


@pytest.mark.skipif(not PAGES.exists(), reason="no collection of real pages here; AFRESH_DATA names its folder")
@pytest.mark.parametrize(
    ("longest", "inject", "seed"),
    [(HOUR, KINDS, 3), (DAY, KINDS, 3), (DAY, MORE_KINDS, 4)],
    ids=["within the hour", "within a day", "more kinds within a day"],
)
def test_on_real_pages_edits_are_counted_and_injected_noise_is_not(
    longest: float, inject: dict[str, Callable[[int, float, random.Random], str]], seed: int
) -> None:
    pages, rng, visitor = real_pages(200), random.Random(seed), Visitor()
    assert len(pages) == 200
    score, late = (
        Score(f"200 real pages, {len(inject)} kinds, up to {longest / HOUR:g} h apart"),
        Score("after eight visits"),
    )
    for name, html in enumerate(pages):
        now, shown, kinds = 1e6, visible(html), rng.sample(sorted(inject), 2)
        every = 60.0 * (longest / 60.0) ** rng.random()
        joints = [match.start() for match in JOINT.finditer(html)]
        cuts = sorted(rng.choice(joints) for _ in kinds)
        pieces = [html[: cuts[0]], html[cuts[0] : cuts[1]], html[cuts[1] :]]
        for nth in range(VISITS):
            now += min(every * rng.uniform(0.5, 1.5), longest)
            changed = False
            editable = [each for each, text in enumerate(pieces) if ELEMENT.search(text)]
            if nth and rng.random() < 0.3 and editable:
                piece = rng.choice(editable)
                after = edited(pieces[piece], rng)
                whole = "".join([*pieces[:piece], after, *pieces[piece + 1 :]])
                changed = visible(whole) != shown
                pieces[piece], shown = after, visible(whole)
            noise = [inject[kind](nth, now, rng) for kind in kinds]
            body = (pieces[0] + noise[0] + pieces[1] + noise[1] + pieces[2]).encode()
            outcome = visitor.visit(str(name), body, now, host=str(name)).outcome
            if changed:
                score.add("changes", outcome)
            elif nth >= LEARNING:
                score.add("noise", outcome)
                if nth >= 8:
                    late.add("noise", outcome)
    print(score, "|", late)
    assert score.share("changes") >= 0.99
    assert score.share("noise") <= 0.02
