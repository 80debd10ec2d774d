"""What a page looks like: layout by kind, main text by version, boilerplate around it.

The body depends on (seed, page, version) alone, apart from the boilerplate noise of noisy pages, which follows the
`Noise` handed in. Each change rewrites one paragraph and the line under the title; every eighth rewrites everything.
The first lines carry a mark (page and version) and the last line repeats it, so that any body tells what it is and
whether it is whole.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from afresh.sim.web import dice, dress
from afresh.sim.web.text import paragraph, sentences, title

EDITION = 8  # every n-th change rewrites the whole text

_STYLE = {
    "news": "body{font:17px/1.5 Georgia,serif}header{border-bottom:3px double}",
    "blog": "body{font:18px/1.6 sans-serif;max-width:44em;margin:auto}",
    "shop": "body{font:15px/1.4 Helvetica,sans-serif}main{display:grid}",
    "reference": "body{font:15px/1.5 serif}nav{float:left;width:11em}",
}
_MENU = {
    "news": ("Politics", "Region", "Economy", "Culture", "Weather"),
    "blog": ("About", "Archive", "Recipes", "Travel", "Contact"),
    "shop": ("Kitchen", "Outdoor", "Furniture", "Offers", "Basket"),
    "reference": ("Contents", "Index", "Recent changes", "Help", "Sources"),
}
_ADS = ("Fresh coffee by post", "Learn the accordion", "Bicycle insurance", "A holiday by the lake", "Better pillows")


_FEEDS = {"news": "rss", "blog": "atom"}  # what kinds of hosts have, as `options.KINDS` says


def _feed(kind: str) -> str:
    """The line in a page's head that names the host's feed."""
    form = _FEEDS.get(kind)
    return f'<link rel="alternate" type="application/{form}+xml" href="/feed.xml">\n' if form else ""


@dataclass(frozen=True, slots=True)
class Noise:
    """What boilerplate may depend on besides the version: the moment and the number of the request."""

    time: float = 0.0
    request: int = 0


QUIET = Noise()


@dataclass(frozen=True, slots=True)
class Mark:
    """What a body says of itself."""

    page: int
    version: int
    whole: bool  # the end belongs to the beginning


def read_mark(body: bytes) -> Mark | None:
    """The mark of a body, or None if it is no page of a synthetic web (or cut before its mark)."""
    start = body.find(b'<meta name="revision" content="', 0, 1024)
    if start < 0:
        return None
    start += 31
    content = body[start : body.find(b'"', start, start + 48)]
    page, dot, version = content.partition(b".")
    if not (dot and page.isdigit() and version.isdigit()):
        return None
    return Mark(int(page), int(version), body.rstrip().endswith(b"<!-- end %s -->" % content))


@dataclass(frozen=True, slots=True)
class _Shell:
    """The parts of a page that no version alters."""

    head: bytes
    after_title: bytes
    menu: bytes
    tail: bytes
    order: int  # which paragraph is rewritten first
    paragraphs: int


class Renderer:
    """Writes bodies; keeps the unchanging parts of the pages it has written (the latest `shells` of them)."""

    def __init__(self, seed: int, *, dressed: bool = False, shells: int = 20_000) -> None:
        self._text = dice.key(seed, dice.Stream.TEXT)
        self._noise = dice.key(seed, dice.Stream.NOISE)
        self._shells: dict[int, _Shell] = {}
        self._limit = shells
        self._dress = (dress.HEAD, dress.HEADER) if dressed else ("", "")

    def title(self, kind: str, page: int, version: int) -> str:
        """The page's title; news get a new one when the whole text is rewritten."""
        edition = version // EDITION if kind == "news" else 0
        return title(kind, dice.bits(self._text, page, edition))

    def body(
        self,
        page: int,
        version: int,
        *,
        kind: str,
        host: str,
        paragraphs: int,
        links: Callable[[], Sequence[tuple[str, str]]],
        noise: tuple[bool, bool] = (False, False),
        moment: Noise = QUIET,
    ) -> bytes:
        """The page as UTF-8 HTML. `noise` says whether the boilerplate and whether the main text is noisy."""
        shell = self._shells.get(page)
        if shell is None:
            if len(self._shells) >= self._limit:
                self._shells.pop(next(iter(self._shells)))
            shell = self._shells[page] = self._shell(page, kind, host, paragraphs, links())
        mark = b"%d.%d" % (page, version)
        name = escape(self.title(kind, page, version)).encode()
        parts = [shell.head, mark, b'">\n<title>', name, shell.after_title]
        parts.append(self._boilerplate(page, moment) if noise[0] else b"")
        parts += [shell.menu, b"<main><article>\n<h1>", name, b"</h1>\n", self._lead(kind, page, version)]
        if noise[1]:
            parts.append(b"<p>This page was read %d times before you came.</p>\n" % (moment.request + 1))
        parts += self._main(kind, page, version, shell)
        parts += [shell.tail, b"<!-- end ", mark, b" -->\n"]
        return b"".join(parts)

    def _shell(self, page: int, kind: str, host: str, paragraphs: int, links: Sequence[tuple[str, str]]) -> _Shell:
        name = escape(host.split(".")[0])
        head = (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="generator" content="afresh web">\n<meta name="revision" content="'
        )
        after = (
            f" | {name}</title>\n<style>{_STYLE[kind]}</style>\n{self._dress[0]}{_feed(kind)}</head>\n"
            f'<body class="{kind}">\n'
            f'<header><a class="logo" href="/">{name}</a>{self._dress[1]}</header>\n'
        )
        menu = "".join(f'<li><a href="/#{i}">{word}</a></li>' for i, word in enumerate(_MENU[kind]))
        listed = "\n".join(f'<li><a href="{escape(url)}">{escape(text)}</a></li>' for url, text in links)
        tail = (
            f'</article></main>\n<aside class="related"><h2>Read on</h2>\n<ul>\n{listed}\n</ul></aside>\n'
            f'<footer><p>{name}. All rights reserved. <a href="/#imprint">Imprint</a> <a href="/#privacy">Privacy</a>'
            f"</p></footer>\n</body>\n</html>\n"
        )
        return _Shell(
            head=head.encode(),
            after_title=after.encode(),
            menu=f"<nav><ul>{menu}</ul></nav>\n".encode(),
            tail=tail.encode(),
            order=dice.bits(self._text, page, -2) % paragraphs,
            paragraphs=paragraphs,
        )

    def _boilerplate(self, page: int, moment: Noise) -> bytes:
        """A clock, a token or an advertisement: different from request to request, and meaning nothing."""
        sort = dice.bits(self._noise, page) % 3
        number = dice.bits(self._noise, page, moment.request + 1)
        if sort == 0:
            return b'<aside class="clock">It is now %.3f seconds past the start.</aside>\n' % moment.time
        if sort == 1:
            return b'<form action="/#search"><input type="hidden" name="token" value="%016x"></form>\n' % number
        ad = _ADS[number % len(_ADS)].encode()
        return b'<aside class="ad"><a href="/#ad-%d">%s</a></aside>\n' % (number % 100_000, ad)

    def _lead(self, kind: str, page: int, version: int) -> bytes:
        """The line under the title that tells of the latest change."""
        number = dice.bits(self._text, page, (version << 8) + 255)
        said = sentences(kind)[number % 1024]
        if kind == "news":
            return b'<p class="lead">Update %d: %s</p>\n' % (version, said)
        if kind == "blog":
            return b'<p class="lead">%d comments. The latest one: %s</p>\n' % (version, said)
        if kind == "shop":
            price = 5 + (number >> 20) % 500
            return b'<p class="lead">Price: %d.%02d. %d in stock. %s</p>\n' % (
                price,
                number % 100,
                version % 90 + 1,
                said,
            )
        return b'<p class="lead">Revision %d. %s</p>\n' % (version + 1, said)

    def _main(self, kind: str, page: int, version: int, shell: _Shell) -> list[bytes]:
        pool, count = sentences(kind), shell.paragraphs
        parts = []
        for index in range(count):
            # Change number v rewrites paragraph (v + order) mod count: how often has that been this one so far?
            turn = (index - shell.order) % count or count
            rewritten = (version - turn) // count + 1 if version >= turn else 0
            number = dice.bits(self._text, page, ((rewritten * 65536 + version // EDITION) << 16) + (index << 8))
            if kind == "reference" and index % 4 == 0:
                parts.append(b"<h2>Section %d</h2>\n" % (index // 4 + 1))
            parts += [b"<p>", paragraph(pool, number), b"</p>\n"]
        return parts
