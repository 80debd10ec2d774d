"""Forms of the console's pages: what is in them, what they wish for, and what is shown afterwards."""

from collections.abc import Mapping
from urllib.parse import parse_qsl, urlencode

from starlette.requests import Request

from afresh.serve.console.facts import Object
from afresh.serve.console.offers import MAX_URLS
from afresh.serve.receive.bodies import Refused, body_of

MAX_FORM = 64 << 10  # bytes
MAX_FIELDS = 20
SAID = ("importance", "shortest", "longest", "hours")  # of pages that are added


async def form_of(request: Request) -> dict[str, str]:
    """The fields of a form, each once; Refused if it is none."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Refused(415, "This is no form.")
    body = await body_of(request, MAX_FORM)
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS))
    except ValueError:
        raise Refused(400, "This form cannot be read.") from None


def wanted_in(said: Mapping[str, str]) -> Object:
    """What a form wishes for, as the API has it; Refused if it names nothing.

    >>> wanted_in({"urls": "https://a.example/ https://b.example/", "importance": "x2", "hours": ""})
    {'importance': 'x2', 'urls': ['https://a.example/', 'https://b.example/']}
    """
    wanted: Object = {name: said[name] for name in SAID if said.get(name)}
    wanted |= {"host": said["host"]} if said.get("host") else {"urls": said.get("urls", "").split()[:MAX_URLS]}
    if not wanted.get("host") and not wanted["urls"]:
        raise Refused(422, "There is no address.", "Write it like https://example.com/")
    return wanted


def shown_after(wish: str, wanted: Object) -> str:
    """Where somebody is led once a wish was handed over."""
    if "host" in wanted:
        return f"/hosts?{urlencode({'name': wanted['host']})}"
    if wish == "remove" or len(wanted["urls"]) > 1:
        return f"/pages?said={wish}"
    return f"/page?{urlencode({'url': wanted['urls'][0], 'said': wish})}"
