"""The API under /api/v1: what is asked is checked against the table, found in a thread, and answered as JSON."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from afresh.errors import AfreshError, NotYet, StoreError
from afresh.serve.console import offers
from afresh.serve.console.door import Door
from afresh.serve.console.facts import OF_A_LISTED_PAGE, Facts, Object, Reading, difference_name
from afresh.serve.console.feed import Feed
from afresh.serve.console.operations import ROOT, Operation, description
from afresh.serve.receive.application import Handler
from afresh.serve.receive.bodies import Refused, body_of
from afresh.store.listing import Wanted
from afresh.units import as_json

MAX_BODY = 2 << 20  # bytes of a wish
MAX_DEPTH = 8  # of its JSON
_TITLES = {
    400: "Bad request",
    401: "Not signed in",
    403: "Not allowed",
    404: "Not found",
    405: "Not possible",
    408: "Too slow",
    409: "Not of this collection",
    413: "Too large",
    415: "Not JSON",
    421: "Unknown name",
    422: "Cannot be done",
    429: "Too much",
    500: "A fault",
    503: "Not now",
}


def problem(refused: Refused) -> Response:
    """A refusal as RFC 9457 has it."""
    facts = {"type": "about:blank", "title": _TITLES.get(refused.status, "Refused"), "status": refused.status}
    detail = f"{refused.message} {refused.hint}".strip()
    return Response(
        as_json(facts | {"detail": detail}) + "\n",
        refused.status,
        refused.headers,
        media_type="application/problem+json",
    )


def as_refused(error: AfreshError) -> Refused:
    """What is said where facts cannot be found, or a wish cannot be taken."""
    if isinstance(error, StoreError | NotYet):
        return Refused(503, error.message, error.hint, Retry_After="10")
    return Refused(400, error.message, error.hint)


def no_difference(page: Object | None, versions: int) -> Refused:
    """What is said of a page of which no two versions can be compared."""
    if page is None:
        return Refused(404, "This page is not kept.", "Add it with a POST to /api/v1/add.")
    if not versions:
        return Refused(404, "There is no copy of this page yet.", "It can be compared once it has changed.")
    if versions == 1 and not page["changes"]:
        return Refused(404, "This page has not changed yet: there is one version of it.")
    return Refused(
        404, "Of this page the current version alone is kept.", "store.versions says how many earlier ones are."
    )


class Api:
    """Answers programs."""

    def __init__(self, reading: Reading, door: Door, feed: Feed, version: str) -> None:
        self.reading, self.door, self.feed = reading, door, feed
        self._description = as_json(description(offers.ALL, version))

    def routes(self) -> list[tuple[str, str, Handler]]:
        """Every operation with what answers it."""
        made: list[tuple[str, str, Handler]] = [
            ("GET", ROOT + each.path, self._reads(each, find)) for each, find in self._finders()
        ]
        made += [("POST", ROOT + each.path, self._wishes(each)) for each in offers.WISHES]
        made.append(("GET", ROOT + offers.OPENAPI.path, self._describe))
        made.append(("GET", ROOT + offers.CHANGES.path, self._changes))
        return made

    def _finders(self) -> list[tuple[Operation, Callable[[dict[str, Any]], Any]]]:
        ask, long, runner = self.reading.ask, self.reading.ask_long, self.reading.ask_runner

        async def pages(said: dict[str, Any]) -> Object:
            cost = said["limit"] * OF_A_LISTED_PAGE
            return await runner(lambda facts: facts.pages(Wanted(**said)), cost=cost)

        async def page(said: dict[str, Any]) -> Object:
            found = await runner(lambda facts: facts.page(said["url"], said["history"]))
            if found is None:
                raise Refused(404, "This page is not kept.", "Add it with a POST to /api/v1/add.")
            return found

        async def hosts(said: dict[str, Any]) -> Object:
            every: list[Object] = await long("hosts", lambda facts: facts.hosts())
            found = [each for each in every if said["name"] in each["host"]] if said["name"] else every
            return {"hosts": found[said["skip"] : said["skip"] + said["limit"]], "total": len(found)}

        async def plan(said: dict[str, Any]) -> Object:
            budgets, goals = sorted(said["budget"]), sorted(said["reach"])
            return await long(f"plan {budgets} {goals}", lambda facts: facts.plan(budgets, goals), made_up=True)

        async def diff(said: dict[str, Any]) -> Object:
            url, numbers = said["url"], (said["from"], said["to"])
            versions = await ask(lambda facts: facts.versions(url))
            newest = versions[0]["number"] if versions else 0
            name = difference_name(url, numbers, newest)
            found = await long(name, lambda facts: facts.difference(url, *numbers), made_up=True)
            if found is None:
                raise no_difference(await runner(lambda facts: facts.page(url, 1)), len(versions))
            return found | {"versions": versions}

        return [
            (offers.DIFF, diff),
            (offers.COLLECTION, lambda said: long("collection", lambda facts: facts.collection())),
            (offers.PAGES, pages),
            (offers.PAGE, page),
            (offers.HOSTS, hosts),
            (offers.SENDERS, lambda said: long("senders", lambda facts: facts.senders())),
            (offers.KINDS, lambda said: long("kinds", lambda facts: facts.kinds())),
            (offers.FIGURES, lambda said: ask(lambda facts: _figures(facts, said["hours"]))),
            (offers.PLAN, plan),
            (offers.SETTINGS, lambda said: ask(lambda facts: {"settings": facts.settings()})),
        ]

    def _reads(self, operation: Operation, find: Callable[[dict[str, Any]], Any]) -> Handler:
        async def handle(request: Request) -> Response:
            self.enter(request, operation)
            try:
                found = await find(operation.read(request))
            except AfreshError as error:
                raise as_refused(error) from None
            text = await asyncio.to_thread(as_json, found)  # it may be large
            return Response(text + "\n", media_type="application/json")

        return handle

    def enter(self, request: Request, operation: Operation) -> None:
        """Refused if somebody may not ask this."""
        self.door.require_name(request)
        self.door.require(request, operation.scope)

    async def _describe(self, request: Request) -> Response:
        self.enter(request, offers.OPENAPI)
        offers.OPENAPI.read(request)
        return Response(self._description + "\n", media_type="application/json")

    async def _changes(self, request: Request) -> Response:
        self.enter(request, offers.CHANGES)
        return await self.feed.answer(request, offers.CHANGES.read(request))

    def _wishes(self, operation: Operation) -> Handler:
        async def handle(request: Request) -> Response:
            self.door.require_name(request)
            header = request.headers.get("authorization", "")
            if not header:  # a browser's session is for forms alone, whose origin is looked at
                raise Refused(401, "No token was sent.", "Send Authorization: Bearer TOKEN.", WWW_Authenticate="Bearer")
            self.door.require(request, operation.scope)
            operation.read(request)
            kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != "application/json":
                raise Refused(415, "A wish is JSON.", "Send Content-Type: application/json.")
            body = await body_of(request, MAX_BODY)
            said = checked(body, operation)
            try:
                facts = await self.reading.ask(lambda facts: facts.wish(operation.name, said))
            except AfreshError as error:
                refused = as_refused(error)
                raise Refused(422 if refused.status == 400 else 503, error.message, error.hint) from None
            return Response(as_json(facts) + "\n", operation.status, media_type="application/json")

        return handle


def _figures(facts: Facts, hours: float) -> Object:
    return {"figures": facts.figures(time.time() - hours * 3600.0)}


def checked(body: bytes, operation: Operation) -> Object:
    """The body of a wish; Refused if it is not as the table says."""
    try:
        said = json.loads(body.decode())
    except (ValueError, RecursionError):
        raise Refused(400, "The body is no JSON.", "Send an object in UTF-8.") from None
    wanted: Mapping[str, Any] = operation.takes or {}
    properties: Mapping[str, Any] = wanted["properties"]
    if not isinstance(said, dict):
        raise Refused(422, "A wish is an object.", f"It has: {', '.join(properties)}.")
    for name in said:
        if name not in properties:
            raise Refused(422, f"A wish has no {str(name)[:40]!r}.", f"It has: {', '.join(properties)}.")
    for name, value in said.items():
        _check(name, value, properties[name])
    if missing := [name for name in wanted.get("required", ()) if name not in said]:
        raise Refused(422, f"There is no {missing[0]} in it.", "See /api/v1/openapi.json.")
    if "oneOf" in wanted and sum(name in said for name in ("urls", "host")) != 1:
        raise Refused(422, "Give either urls or a host.")
    return said


def _check(name: str, value: Any, schema: Mapping[str, Any]) -> None:
    if schema["type"] == "array":
        if not isinstance(value, list) or not schema["minItems"] <= len(value) <= schema["maxItems"]:
            raise Refused(422, f"{name} is a list of {schema['minItems']} to {schema['maxItems']} texts.")
        for each in value:
            _check(name, each, schema["items"])
        return
    if not isinstance(value, str) or not schema.get("minLength", 0) <= len(value) <= schema["maxLength"]:
        raise Refused(422, f"{name} is a text of {schema.get('minLength', 0)} to {schema['maxLength']} characters.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Refused(422, f"{name} is not valid Unicode.") from None
