"""The pages for a browser: facts into templates. They work without any script."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.resources import files
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import Response
from xxhash import xxh3_64_hexdigest

from afresh.errors import AfreshError, BodyDamaged, InputError
from afresh.serve.console import offers, pictures
from afresh.serve.console.api import as_refused, problem
from afresh.serve.console.charts import charts_of, curve_of
from afresh.serve.console.door import Door
from afresh.serve.console.facts import OF_A_LISTED_PAGE, RECKONED, STARTS, Object, Reading, difference_name
from afresh.serve.console.feed import Feed, atom, feed_id, looked_back_to, matching
from afresh.serve.console.forms import form_of, shown_after, wanted_in
from afresh.serve.console.operations import ROOT, Operation, Parameter
from afresh.serve.console.wording import FILTERS
from afresh.serve.receive.application import Handler
from afresh.serve.receive.bodies import Refused
from afresh.store.listing import Wanted

PATIENCE = 4.0  # seconds that a page waits for what takes long; then it says so, and comes again by itself
AGAIN = "3"  # seconds
SAID_FROM = 10.0  # seconds: figures that are older say so
ASIDE, OLD_ASIDE = 0.5, 120.0  # seconds: how long an advice is waited for, and how old it may be instead
SHOWN = 50  # changes
# How pages come that are chosen by these states, whatever order is asked for.
ORDERED = {
    "gone": "gone, the latest first",
    "failing": "failing, the most failures first",
    "paused": "paused by themselves, the first added first",
}
NO_VERSIONS = "Earlier versions of this page are not kept: store.versions says how many there may be."
MORE_BUDGET = 1.2  # what is reckoned besides the budget there is
SPANS = {"1h": 1.0, "6h": 6.0, "24h": 24.0, "7d": 168.0}
STATIC = {
    "console.css": "text/css; charset=utf-8",
    "console.js": "text/javascript; charset=utf-8",
    "mark.svg": "image/svg+xml",
}
_SPAN = Parameter("span", "How far back.", default="24h", choices=tuple(SPANS))
_SAID = Parameter("said", "What was done.", longest=20)

# The pages' own parameters, read like those of the API.
OVERVIEW = Operation("GET", "/", "overview", "", (_SPAN,))
CHANGES = Operation("GET", "/changes", "changes", "", tuple(p for p in offers.CHANGES.parameters if p.longest == 300))
_VIEW = Parameter("view", "How a difference is shown.", default="side", choices=("side", "inline"))
PAGE = Operation("GET", "/page", "page", "", (*offers.PAGE.parameters, *offers.DIFF.parameters[1:], _VIEW, _SAID))
NOTHING = Operation("GET", "/", "", "", (_SAID,))


class Site:
    """Answers people."""

    def __init__(self, reading: Reading, door: Door, feed: Feed, version: str, reason: Callable[[str], str]) -> None:
        self.reading, self.door, self.feed = reading, door, feed
        here = files("afresh.serve.console") / "static"
        self._static = {name: (here / name).read_bytes() for name in STATIC}
        self._templates = Environment(
            loader=PackageLoader("afresh.serve.console"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters |= {**FILTERS, "reason": reason}
        mark = xxh3_64_hexdigest(b"".join(self._static.values()))
        self._templates.globals |= {"version": version, "mark": mark, "root": ROOT}

    def routes(self) -> list[tuple[str, str, Handler]]:
        """Every page."""
        pages: list[tuple[str, Callable[[Request], Any]]] = [
            ("/", self.overview),
            ("/pages", self.pages),
            ("/page", self.page),
            ("/hosts", self.hosts),
            ("/signals", self.signals),
            ("/changes", self.changes),
            ("/settings", self.settings),
            ("/plan", self.plan),
        ]
        made = [("GET", path, self._page(find)) for path, find in pages]
        made += [("GET", "/changes.atom", self.atom), ("GET", "/static/{name}", self.static)]
        made += [("GET", "/sign-in", self.sign_in_page), ("POST", "/sign-in", self.sign_in)]
        made += [("POST", "/sign-out", self.sign_out), ("POST", "/do/{wish}", self.do)]
        return made

    def _page(self, find: Callable[[Request], Any]) -> Handler:
        async def handle(request: Request) -> Response:
            self.door.require_name(request)
            try:
                self.door.require(request, "read")
            except Refused as refused:
                if refused.status == 401:  # somebody in a browser
                    return self._shown(request, "sign-in.html", {"needed": True}, 401)
                raise
            try:
                name, facts = await find(request)
            except AfreshError as error:
                raise as_refused(error) from None
            return self._shown(request, name, facts)

        return handle

    def _shown(self, request: Request, name: str, facts: Mapping[str, Any], status: int = 200) -> Response:
        session = self.door.session_of(request)
        token = None if session is None else self.door.tokens.find(session.presented)
        may_act = token is not None and token.may("act")
        more = {
            "here": request.url.path,
            "form_key": session.form_key if session is not None and may_act else "",
            "signed_in": None if token is None else token.name,
            "may_act": may_act,
            "said": request.query_params.get("said", ""),
        }
        html = self._templates.get_template(name).render({**more, **facts})
        return Response(html, status, media_type="text/html")

    def refused(self, request: Request, refused: Refused) -> Response:
        """A refusal for people; programs get a problem."""
        path = request.url.path
        if path.startswith((ROOT, "/metrics")) or "text/html" not in request.headers.get("accept", ""):
            return problem(refused)
        facts = {"status": refused.status, "message": str(refused), "hint": refused.hint}
        is_late = str(refused) in (RECKONED, STARTS) and request.method == "GET"
        if str(refused) == STARTS:
            facts["hint"] = f"{refused.hint} This page loads itself again."
        elif is_late:
            facts["hint"] = "The collection is large, or the console has just begun. This page loads itself again."
        response = self._shown(request, "refused.html", facts, refused.status)
        response.headers.update(refused.headers)
        if is_late:
            response.headers["Refresh"] = AGAIN
        return response

    async def overview(self, request: Request) -> tuple[str, Object]:
        """How the collection is, and how it went."""
        span = OVERVIEW.read(request)["span"]
        collection = await self.reading.ask_long(
            "collection", lambda facts: facts.collection(), seconds=PATIENCE, older=math.inf
        )
        end = time.time()
        begin = end - SPANS[span] * 3600.0
        figures = await self.reading.ask(lambda facts: facts.figures(begin))
        more = None
        if budget := not collection["compiling"] and (collection.get("budget") or collection.get("next_budget")):
            budgets = [budget, budget * MORE_BUDGET]
            try:
                more = await self.reading.ask_long(
                    f"more {budget}",
                    lambda facts: facts.plan(budgets, [0.5]),
                    seconds=ASIDE,
                    older=OLD_ASIDE,
                    made_up=True,
                )
            except (AfreshError, Refused):
                more = None
        changes = (await self.feed.latest(8, lambda url: True)).found
        charts = charts_of(figures, begin, end)
        return "overview.html", {
            "c": collection,
            "old": collection["time"] if end - collection["time"] > SAID_FROM else None,
            "more": more,
            "changes": changes,
            "span": span,
            "spans": list(SPANS),
            **charts,
        }

    async def pages(self, request: Request) -> tuple[str, Object]:
        """A part of the list of pages."""
        said = offers.PAGES.read(request) if "said" not in request.query_params else _defaults(offers.PAGES)
        wanted = Wanted(**said)
        cost = wanted.limit * OF_A_LISTED_PAGE
        found = await self.reading.ask_runner(lambda facts: facts.pages(wanted), cost=cost, by_browser=True)
        following = urlencode({**{k: v for k, v in said.items() if v and k != "after"}, "after": found["next"] or ""})
        return "pages.html", {
            "found": found,
            "asked": said,
            "following": following,
            "ordered": ORDERED.get(wanted.driver),
        }

    async def page(self, request: Request) -> tuple[str, Object]:
        """All about one page."""
        asked = PAGE.read(request)
        found = await self._difference(asked)
        page = await self.reading.ask_runner(lambda facts: facts.page(asked["url"], asked["history"]), by_browser=True)
        if page is None:
            raise Refused(404, "This page is not kept.", "Look for it among the pages, or add it.")
        crawls = [(each["time"], str(each["outcome"])) for each in page["history"]]
        begin = min((at for at, _ in crawls), default=0.0)
        end = max(time.time(), begin + 1.0)
        return "page.html", {
            "page": page,
            "host_name": page["url"].split("/")[2] if page["url"].startswith(("http:", "https:")) else "",
            "timeline": pictures.timeline(crawls, begin=begin, end=end),
            "begin": begin,
            "asked": asked,
            **found,
        }

    async def _difference(self, asked: Object) -> Object:
        """The versions of a page, what changed between two of them, whether that is still being reckoned, and what is
        said if those that somebody asks for are not kept."""
        url, numbers = asked["url"], (asked["from"], asked["to"])
        versions = await self.reading.ask(lambda facts: facts.versions(url))
        found: Object = {"versions": versions, "difference": None, "late": False, "missing": ""}
        if len(versions) < 2:
            return found | {"missing": NO_VERSIONS if numbers != (None, None) else ""}
        name = difference_name(url, numbers, versions[0]["number"])
        try:
            difference = await self.reading.ask_long(
                name, lambda facts: facts.difference(url, *numbers), seconds=PATIENCE, made_up=True
            )
        except Refused:  # the first one in a process has to load what is compiled
            return found | {"late": True}
        except (InputError, BodyDamaged) as error:
            return found | {"missing": f"{error.message} {error.hint}"}
        return found | {"difference": difference}

    async def hosts(self, request: Request) -> tuple[str, Object]:
        """Hosts, the most troubled first."""
        said = offers.HOSTS.read(request)
        every = await self.reading.ask_long("hosts", lambda facts: facts.hosts(), seconds=PATIENCE)
        found = [each for each in every if said["name"] in each["host"]]
        part = found[said["skip"] : said["skip"] + said["limit"]]
        return "hosts.html", {"hosts": part, "total": len(found), "asked": said}

    async def signals(self, request: Request) -> tuple[str, Object]:
        """Who sends signals, and what they are worth."""
        NOTHING.read(request)
        found = await self.reading.ask_long("senders", lambda facts: facts.senders(), seconds=PATIENCE)
        senders, grades = found["senders"][:200], found["grades"][:200]
        told = {
            "workers": any("workers" in each for each in senders) or any("worker" in each for each in grades),
            "former": any(each.get("former") for each in grades),
        }
        return "signals.html", {"senders": senders, "grades": grades} | told

    async def changes(self, request: Request) -> tuple[str, Object]:
        """The latest changes, and live what comes."""
        said = CHANGES.read(request)
        newest = await self.reading.ask(lambda facts: facts.latest(1))  # what comes meanwhile is streamed
        found = await self.feed.latest(SHOWN, matching(said["host"], said["pattern"]))
        filtered = urlencode({name: value for name, value in said.items() if value})
        return "changes.html", {
            "changes": found.found,
            "back_to": None if found.back_to is None else looked_back_to(found.back_to),
            "asked": said,
            "filtered": filtered,
            "newest": max((each["number"] for each in newest + found.found), default=0),
        }

    async def settings(self, request: Request) -> tuple[str, Object]:
        """All settings, those that differ from their defaults first."""
        NOTHING.read(request)
        found = await self.reading.ask(lambda facts: facts.settings())
        tables: dict[str, list[Object]] = {}
        for each in found:
            tables.setdefault(each["table"], []).append(each)
        return "settings.html", {"tables": tables, "changed": [each for each in found if each["changed"]]}

    async def plan(self, request: Request) -> tuple[str, Object]:
        """What budgets buy, and what goals cost."""
        said = offers.PLAN.read(request)
        budgets, goals = sorted(said["budget"]), sorted(said["reach"]) or [0.5, 0.8, 0.9, 0.95, 0.99]
        found = await self.reading.ask_long(
            f"plan {budgets} {goals}", lambda facts: facts.plan(budgets, goals), seconds=PATIENCE, made_up=True
        )
        return "plan.html", {"plan": found, "asked": said, "curve": curve_of(found.get("budgets", []))}

    async def atom(self, request: Request) -> Response:
        """The latest changes for feed readers."""
        self.door.require_name(request)
        self.door.require(request, "read")
        said = CHANGES.read(request)
        latest = await self.feed.latest(50, matching(said["host"], said["pattern"]))
        latest = replace(latest, found=await self.feed.told(latest.found))
        base = self.door.public_origin or f"{request.url.scheme}://{request.headers['host']}"
        name = feed_id(await self.reading.ask(lambda facts: facts.identity()), said["host"], said["pattern"])
        text = atom(latest, name, base, said["host"], said["pattern"], time.time())
        return Response(text, media_type="application/atom+xml")

    async def static(self, request: Request) -> Response:
        """A file of our own; its address changes with it."""
        self.door.require_name(request)
        name = request.path_params["name"]
        if name not in STATIC:
            raise Refused(404, "There is nothing here.")
        kept = {"Cache-Control": "public, max-age=31536000, immutable"} if request.url.query else {}
        return Response(self._static[name], headers=kept, media_type=STATIC[name])

    async def sign_in_page(self, request: Request) -> Response:
        """Where a token is given."""
        self.door.require_name(request)
        return self._shown(request, "sign-in.html", {"needed": False})

    async def sign_in(self, request: Request) -> Response:
        """A token is given."""
        self.door.require_name(request)
        said = await form_of(request)
        try:
            cookie = self.door.sign_in(request, said.get("token", "").strip())
        except Refused as refused:
            facts = {"needed": False, "wrong": f"{refused} {refused.hint}".strip()}
            return self._shown(request, "sign-in.html", facts, refused.status)
        return _to("/", {"Set-Cookie": cookie})

    async def sign_out(self, request: Request) -> Response:
        """A session ends."""
        self.door.require_name(request)
        self.door.require_own_origin(request)
        return _to("/", {"Set-Cookie": self.door.sign_out(request)})

    async def do(self, request: Request) -> Response:
        """A form wishes for something."""
        self.door.require_name(request)
        wish = request.path_params["wish"]
        if wish not in {each.name for each in offers.WISHES}:
            raise Refused(404, "There is nothing here.")
        said = await form_of(request)
        self.door.require_own_form(request, said.get("form_key", ""))
        wanted = wanted_in(said)
        try:
            await self.reading.ask(lambda facts: facts.wish(wish, wanted))
        except AfreshError as error:
            refused = as_refused(error)
            raise Refused(422 if refused.status == 400 else refused.status, error.message, error.hint) from None
        return _to(shown_after(wish, wanted))


def _defaults(operation: Operation) -> Object:
    return {each.name: each.default if each.kind != "string" else each.default or "" for each in operation.parameters}


def _to(where: str, headers: Mapping[str, str] | None = None) -> Response:
    return Response(status_code=303, headers={"Location": where, **(headers or {})})
