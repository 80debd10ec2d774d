"""The table of the API's operations."""

from typing import Any

from afresh.serve.console.operations import Operation, Parameter
from afresh.store.listing import MAX_LIMIT, ORDERS, STATES

MAX_SERIAL = (1 << 62) - 1
MAX_URLS = 500  # of one wish
MAX_RATE = 1e6
MAX_WITH_BLOCKS = 100  # changes in one answer of lines
_NUMBER = {"type": ["number", "null"]}
_TEXT = {"type": "string"}
_YES_OR_NO = {"type": "boolean"}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def _list(**properties: Any) -> dict[str, Any]:
    return {"type": "array", "items": _object(**properties)}


_URL = Parameter("url", "The address of a page that is kept.", required=True, example="https://example.com/")
_AFTER = Parameter("after", "Where the part before ended: its `next`.", longest=16_384)
_LIMIT = Parameter("limit", "How many at most.", "integer", 50, 1, MAX_LIMIT)
_HOST = Parameter("host", "Only pages of this host.", longest=300)
_PATTERN = Parameter(
    "pattern", "Only addresses that match; * stands for anything.", longest=300, example="https://example.com/news/*"
)

COLLECTION = Operation(
    "GET",
    "/collection",
    "collection",
    "The collection: freshness as it is believed, calibration, budget, price, politeness, failures by reason.",
    answers=_object(pages={"type": "integer"}, copies={"type": "integer"}, expected_freshness=_NUMBER, price=_NUMBER),
)
PAGES = Operation(
    "GET",
    "/pages",
    "pages",
    "Pages in an order, a part at a time. `next` begins the next part; null: this was the last one.",
    (
        Parameter(
            "order",
            "url: by address; added: the first added first; checked: the longest unchecked first; failures: those "
            "that fail, the most failures first. A host or the beginning of an address goes by address; failing pages "
            "go by failures, those that are gone by when, the latest first, paused ones and those without a copy by "
            "when they were added.",
            default="url",
            choices=ORDERS,
        ),
        Parameter(
            "state",
            "Only pages with a copy, or without one; whose copy is likely fresh, or not (also that of a page that is "
            "gone); that fail and are not gone; that are gone; or that are paused by themselves: of a paused host, all "
            "pages are paused.",
            choices=("", *STATES),
        ),
        _HOST,
        Parameter("text", "Only addresses that contain this; or that begin so, if it begins with http:", longest=300),
        _AFTER,
        _LIMIT,
    ),
    answers=_object(
        pages=_list(
            url=_TEXT, host=_TEXT, checked=_NUMBER, fresh_probability=_NUMBER, gone=_YES_OR_NO, gone_since=_NUMBER
        ),
        next={"type": ["string", "null"]},
        looked_at={"type": "integer"},
    ),
)
PAGE = Operation(
    "GET",
    "/page",
    "page",
    "One page: copy, history, beliefs, value, when it is due and why, noise, who signalled, and pages beside it.",
    (_URL, Parameter("history", "How many of its latest crawls.", "integer", 50, 0, 1000)),
    answers=_object(url=_TEXT, why=_TEXT),
    may_miss=True,
)
_VERSION = {
    "type": "object",
    "properties": {"number": {"type": "integer"}, "fetched": {"type": "number"}, "appeared": {"type": "number"}},
}
DIFF = Operation(
    "GET",
    "/diff",
    "diff",
    "What changed on a page between two versions that are kept, block by block, word by word.",
    (
        _URL,
        Parameter(
            "from", "The number of the older version; default: that before `to`.", "integer", None, 0, MAX_SERIAL
        ),
        Parameter("to", "The number of the newer version; default: the current copy.", "integer", None, 0, MAX_SERIAL),
    ),
    answers=_object(url=_TEXT, rows={"type": ["array", "null"]}, versions={"type": "array", "items": _VERSION}),
    may_miss=True,
)
HOSTS = Operation(
    "GET",
    "/hosts",
    "hosts",
    "Hosts with pages, rates, rests, robots.txt and failures; the most troubled first.",
    (
        Parameter("name", "Only hosts whose name contains this.", longest=300),
        Parameter("skip", "Leave out so many at the beginning.", "integer", 0, 0, 10_000_000),
        _LIMIT,
    ),
    answers=_object(hosts=_list(host=_TEXT), total={"type": "integer"}),
)
SENDERS = Operation(
    "GET",
    "/senders",
    "senders",
    "Who sends signals, what they are worth, and their grades on each host.",
    answers=_object(senders=_list(sender=_TEXT), grades=_list(sender=_TEXT, host=_TEXT)),
)
KINDS = Operation("GET", "/kinds", "kinds", "Kinds of pages: how many, how often they change, what knowing is worth.")
CHANGES = Operation(
    "GET",
    "/changes",
    "changes",
    "What was found new, changed or gone, in the order in which it was stored: JSON lines; or, for who accepts "
    "text/event-stream, events that go on as changes are found. Last-Event-ID continues where a stream broke off.",
    (
        Parameter(
            "after", "Begin behind this number: the last one that you have taken up.", "integer", None, 0, MAX_SERIAL
        ),
        Parameter("limit", "How many lines at most; a stream of events has no end.", "integer", 1000, 1, 10_000),
        _HOST,
        _PATTERN,
        Parameter(
            "blocks",
            "Also the text of the blocks that changed, as pairs of before and after, and of a page that is new or "
            "back all of its text; null where that is not kept (store.versions), or the page is gone. "
            f"Then at most {MAX_WITH_BLOCKS} lines come at once.",
            "boolean",
            False,
        ),
    ),
    media=("application/x-ndjson", "text/event-stream"),
    may_conflict=True,
)
FIGURES = Operation(
    "GET",
    "/figures",
    "figures",
    "How it was: freshness, what checks found, crawls, changes, failures, budget and price, minute by minute.",
    (Parameter("hours", "How far back.", "number", 24, 0.1, 168),),
    answers=_object(figures=_list(time={"type": "number"})),
)
PLAN = Operation(
    "GET",
    "/plan",
    "plan",
    "What budgets buy and what goals cost: the best freshness that any schedule could reach.",
    (
        Parameter("budget", "Crawls a second; repeatable.", "number", None, 1e-9, MAX_RATE, repeats=True),
        Parameter(
            "reach",
            "A share of requests that find a fresh copy; repeatable.",
            "number",
            None,
            0.001,
            0.999999,
            repeats=True,
        ),
    ),
    answers=_object(pages={"type": "integer"}, budgets=_list(budget=_NUMBER, freshness=_NUMBER, price=_NUMBER)),
)
SETTINGS = Operation(
    "GET",
    "/settings",
    "settings",
    "All settings as they are in force, each with its default.",
    answers=_object(settings=_list(table=_TEXT, name=_TEXT, default=_TEXT)),
)
OPENAPI = Operation("GET", "/openapi.json", "openapi", "This description.")

_URLS = {"type": "array", "items": {"type": "string", "maxLength": 2083}, "minItems": 1, "maxItems": MAX_URLS}
_HOST_NAME = {"type": "string", "minLength": 1, "maxLength": 300}
_ONE_OF = "Pages that are kept, or a host."
_TAKEN = _object(taken={"type": "boolean"}, running={"type": "boolean"})


def _wish(name: str, help: str, properties: dict[str, Any], required: list[str] | None = None) -> Operation:  # noqa: A002
    takes: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        takes["required"] = required
    else:
        takes["oneOf"] = [{"required": ["urls"]}, {"required": ["host"]}]
    return Operation(
        "POST", f"/{name}", name, help, answers=_TAKEN, takes=takes, scope="act", status=202, may_miss=True
    )


WISHES = (
    _wish(
        "add",
        "Keep pages from now on; of those that are kept already, the given options are set.",
        {
            "urls": _URLS,
            "importance": {"type": "string", "maxLength": 40, "description": 'Requests a second, or "x5".'},
            "shortest": {"type": "string", "maxLength": 40, "description": 'At most one crawl in this time: "10min".'},
            "longest": {"type": "string", "maxLength": 40, "description": 'At least one crawl in this time: "1d".'},
            "hours": {"type": "string", "maxLength": 80, "description": 'Only within these hours: "08:00-18:00".'},
        },
        ["urls"],
    ),
    _wish("remove", f"Forget pages with all that is kept of them. {_ONE_OF}", {"urls": _URLS, "host": _HOST_NAME}),
    _wish("pause", f"Crawl them no more for now. {_ONE_OF}", {"urls": _URLS, "host": _HOST_NAME}),
    _wish("resume", f"Undo a pause. {_ONE_OF}", {"urls": _URLS, "host": _HOST_NAME}),
    _wish("refresh", "Crawl pages now, ahead of all others.", {"urls": _URLS}, ["urls"]),
)

READS = (COLLECTION, PAGES, PAGE, DIFF, HOSTS, SENDERS, KINDS, CHANGES, FIGURES, PLAN, SETTINGS, OPENAPI)
ALL = (*READS, *WISHES)
