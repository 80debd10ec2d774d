"""The console over a real listener: its API and pages, who may do what, and what strangers' words become."""

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from afresh.serve.console import offers
from afresh.serve.console.metrics import NAMES
from afresh.store import Sqlite
from consoles import ATTACK, CHANGED, SCRIPT, Served, console, fill

PAGES = ["/", "/?span=7d", "/pages", "/hosts", "/changes", "/signals", "/plan", "/settings", "/sign-in"]
PAGES += [f"/page?url={quote(ATTACK, safe='')}", f"/page?url={quote(CHANGED, safe='')}&view=inline"]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("console")
    fill(folder / "s.db")
    with console(folder, runs=True) as found:
        yield found


@pytest.fixture
def client(served: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=served.base, timeout=60) as made:
        yield made


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def get(client: httpx.Client, path: str, **headers: str) -> httpx.Response:
    answer = client.get(path, headers={"Accept": "text/html", **headers})
    assert answer.status_code == 200, (path, answer.status_code, answer.text)
    return answer


def test_the_description_names_every_operation_and_each_answers(client: httpx.Client) -> None:
    described = client.get("/api/v1/openapi.json").json()
    assert described["openapi"].startswith("3.1")
    assert set(described["paths"]) == {f"/api/v1{each.path}" for each in offers.ALL}
    needs = {"/api/v1/page": f"?url={quote(CHANGED)}", "/api/v1/diff": f"?url={quote(CHANGED)}"}
    for path, methods in described["paths"].items():
        if "get" in methods:
            answer = client.get(path + needs.get(path, ""))
            assert answer.status_code == 200, (path, answer.text)
            assert answer.headers["content-type"].split(";")[0] in methods["get"]["responses"]["200"]["content"]


def test_pages_come_part_by_part_and_none_twice(client: httpx.Client) -> None:
    found, after = [], ""
    while True:
        part = client.get("/api/v1/pages", params={"limit": 25, "after": after}).json()
        found += [page["url"] for page in part["pages"]]
        if not (after := part["next"] or ""):
            break
    assert found == sorted(set(found))
    assert len(found) == 62
    failing = client.get("/api/v1/pages", params={"state": "failing"}).json()["pages"]
    assert len(failing) == 7
    assert {page["reason"] for page in failing} >= {"timeout"}


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/v1/nothing", 404),
        ("/api/v1/page", 400),
        ("/api/v1/page?url=https%3A%2F%2Felsewhere.example%2F", 404),
        ("/api/v1/page?url=%00", 404),
        ("/api/v1/pages?limit=0", 400),
        ("/api/v1/pages?limit=9999999999999999999999", 400),
        ("/api/v1/pages?limit=%D9%A3", 400),
        ("/api/v1/pages?order=sideways", 400),
        ("/api/v1/pages?after=nowhere", 400),
        ("/api/v1/pages?unknown=1", 400),
        ("/api/v1/pages?limit=1&limit=2", 400),
        ("/api/v1/plan?budget=-1", 400),
        ("/api/v1/plan?budget=nan", 400),
        (f"/api/v1/diff?url={quote(ATTACK, safe='')}", 404),
        (f"/api/v1/diff?url={quote(CHANGED)}&from=77", 400),
        ("/api/v1/changes?after=x", 400),
    ],
)
def test_what_cannot_be_used_is_a_problem_with_a_sentence(client: httpx.Client, path: str, status: int) -> None:
    answer = client.get(path)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert {"type", "title", "status", "detail"} <= set(answer.json())
    assert answer.json()["status"] == status


def test_changes_can_be_read_on_where_one_stopped(client: httpx.Client) -> None:
    first = client.get("/api/v1/changes?limit=10")
    lines = [json.loads(line) for line in first.text.splitlines()]
    numbers = [line["number"] for line in lines]
    assert numbers == sorted(numbers)
    assert first.headers["afresh-next"] == str(numbers[-1])
    rest = client.get(f"/api/v1/changes?after={numbers[-1]}").text.splitlines()
    assert min(json.loads(line)["number"] for line in rest) > numbers[-1]
    assert len(rest) + 10 == 57  # new pages, the attack, and a page that changed: new and changed
    own = client.get("/api/v1/changes", params={"pattern": "http://a.example/ch*", "blocks": "true"}).text.splitlines()
    changed = json.loads(own[1])
    assert (changed["change"], changed["url"]) == ("changed", CHANGED)
    assert changed["blocks"][0][0] == "one two three"
    assert changed["blocks"][0][1].startswith("one 2 three <b>")
    new = json.loads(own[0])
    assert (new["change"], new["blocks"]) == ("new", [[None, "one two three"], [None, "stays"]])
    assert (new["words"], changed["words"]["removed"]) == ({"removed": 0, "added": 4}, 1)


def test_events_resume_behind_the_last_that_was_taken_up(client: httpx.Client, served: Served) -> None:
    every = [json.loads(line)["number"] for line in client.get("/api/v1/changes").text.splitlines()]
    headers = {"Accept": "text/event-stream", "Last-Event-ID": str(every[-4])}
    with client.stream("GET", "/api/v1/changes?after=0", headers=headers) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        got = []
        for line in stream.iter_lines():
            if line.startswith("id: "):
                got.append(int(line[4:]))
            if len(got) == 3:
                break
    assert got == every[-3:]
    assert client.get("/api/v1/changes", headers=headers | {"Last-Event-ID": "x"}).status_code == 400


def test_the_feed_for_readers_is_atom(client: httpx.Client) -> None:
    answer = client.get("/changes.atom?host=a.example")
    feed = ET.fromstring(answer.text)
    space = "{http://www.w3.org/2005/Atom}"
    entries = feed.findall(f"{space}entry")
    assert len({entry.findtext(f"{space}id") for entry in entries}) == len(entries) > 10
    assert all("a.example" in (entry.findtext(f"{space}title") or "") for entry in entries)
    told = next(entry for entry in entries if entry.findtext(f"{space}title") == f"changed: {CHANGED}")
    content = told.findtext(f"{space}content") or ""
    assert "1 word gone, " in content
    assert "- one two three\n+ one 2 three <b>" in content
    # By whatever name the console is asked, the feed and its entries are the same ones; another feed is not.
    host = {"Host": client.base_url.netloc.decode().replace("127.0.0.1", "localhost")}
    again = ET.fromstring(client.get("/changes.atom?host=a.example", headers=host).text)
    own = feed.findtext(f"{space}id") or ""
    assert again.findtext(f"{space}id") == own
    assert own.startswith("urn:uuid:")
    other = ET.fromstring(client.get("/changes.atom").text)
    assert other.findtext(f"{space}id") != own
    links = [each.find(f"{space}link") for each in (feed, again)]
    assert ["localhost" in (each.get("href") or "") for each in links if each is not None] == [False, True]
    named = [[entry.findtext(f"{space}id") for entry in each.findall(f"{space}entry")] for each in (feed, again)]
    assert named[0] == named[1]


def test_it_is_said_why_nothing_can_be_compared(client: httpx.Client) -> None:
    first = client.get("/api/v1/pages").json()["pages"]
    copied, none = (next(each["url"] for each in first if bool(each["fetched"]) is has) for has in (True, False))
    for url, said in ((copied, "has not changed yet"), (none, "no copy"), ("http://a.example/strange", "is not kept")):
        answer = client.get("/api/v1/diff", params={"url": url})
        assert answer.status_code == 404
        assert said in answer.json()["detail"]


class _Tags(HTMLParser):
    """What a browser would make of a page: its tags, and attributes that would run."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts: list[str | None] = []
        self.bad: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "script":
            self.scripts.append(dict(attrs).get("src"))
        if tag == "img" or any(name.startswith("on") or name == "style" for name, _ in attrs):
            self.bad.append(tag)
        self.bad += [value or "" for name, value in attrs if name == "href" and (value or "").startswith("javascript")]


@pytest.mark.parametrize("path", PAGES)
def test_pages_are_whole_and_strangers_words_stay_words(client: httpx.Client, path: str) -> None:
    answer = get(client, path)
    tags = _Tags()
    tags.feed(answer.text)
    assert [src and src.split("?")[0] for src in tags.scripts] == ["/static/console.js"]
    assert not tags.bad
    assert SCRIPT not in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "unsafe" not in answer.headers["content-security-policy"]


def test_a_difference_shows_words_that_came_and_went(client: httpx.Client) -> None:
    for view in ("side", "inline"):
        typed = CHANGED.replace("a.example", "A.Example:80")  # as somebody may write it
        text = get(client, f"/page?url={quote(typed)}&view={view}").text
        assert re.search(r"<del>two\s*</del>", text)
        assert re.search(r"<ins>2\s*</ins>", text)


def test_a_change_leads_to_what_differs(client: httpx.Client) -> None:
    text = get(client, "/changes?pattern=http://a.example/ch*").text
    links = re.findall(r'href="(/page[^"]*#difference)"', text)
    assert len(links) == 1, "the first copy differs from nothing"
    assert re.search(r"<del>two\s*</del>", get(client, links[0].replace("&amp;", "&").partition("#")[0]).text)
    time = re.search(r'<time datetime="2026-11-18T[^"]*" title="([^"]*)">([^<]*)</time>', text)
    assert time is not None
    assert re.fullmatch(r"(\d+ \w+ )+ago|in (\d+ \w+ ?)+", time[1])
    assert re.fullmatch(r"2026-11-18 [\d:]{8}", time[2]), "what stays on the screen while time goes on says when it was"


def test_a_version_that_is_not_kept_is_said_and_the_page_shown(client: httpx.Client) -> None:
    text = get(client, f"/page?url={quote(CHANGED)}&to=77").text
    assert "No version 77 is kept." in text
    assert "Why then" in text
    text = get(client, f"/page?url={quote('https://a.example/00000', safe='')}&to=77").text
    assert "Earlier versions of this page are not kept" in text


def test_a_page_is_told_of_with_those_beside_it(client: httpx.Client) -> None:
    page = client.get("/api/v1/page", params={"url": "https://a.example/00000", "history": 0}).json()
    assert page["history"] == []
    assert "due" in page
    assert len(page["siblings"]) == 8
    assert page["url"] not in {each["url"] for each in page["siblings"]}
    assert all(each["url"].startswith("https://a.example/") for each in page["siblings"])


def test_metrics_have_the_names_that_are_promised(client: httpx.Client) -> None:
    text = get(client, "/metrics").text
    told = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    known = {name.removesuffix("_total") for name in NAMES} | set(NAMES)
    assert told <= known
    assert "afresh_freshness_ratio" in told
    assert 'afresh_failing_pages{reason="timeout"} 6.0' in text


def test_nothing_but_its_own_names_leads_here(client: httpx.Client) -> None:
    for host, status in (("evil.example", 421), ("localhost:1", 200), ("127.0.0.1", 200), ("a@localhost", 421)):
        assert client.get("/api/v1/collection", headers={"Host": host}).status_code == status, host
        assert client.get("/static/console.css", headers={"Host": host}).status_code == status, host


def test_wishes_need_a_token_that_may_act(client: httpx.Client, served: Served) -> None:
    wish = {"urls": ["https://a.example/00000"]}
    assert client.post("/api/v1/pause", json=wish).status_code == 401
    assert client.post("/api/v1/pause", json=wish, headers=bearer("afresh_wrong")).status_code == 401
    assert client.post("/api/v1/pause", json=wish, headers=bearer(served.read)).status_code == 403
    assert client.post("/api/v1/pause", json=wish, headers=bearer(served.signal)).status_code == 403
    assert client.post("/api/v1/pause", json=wish, headers=bearer(served.act)).status_code == 202
    assert client.get("/api/v1/pages?state=paused").json()["pages"][0]["url"] == wish["urls"][0]
    assert client.post("/api/v1/resume", json=wish, headers=bearer(served.act)).status_code == 202
    assert client.get("/api/v1/pages?state=paused").json()["pages"] == []


@pytest.mark.parametrize(
    ("wish", "body", "status"),
    [
        ("add", '{"urls": ["file:///etc/passwd"]}', 422),
        ("add", '{"urls": ["/etc/passwd"]}', 422),
        ("add", '{"urls": ["sql:shop/top"]}', 422),
        ("add", '{"urls": ["https://new.example/"], "importance": "much"}', 422),
        ("add", '{"urls": []}', 422),
        ("add", '{"urls": ["\\ud800"]}', 422),
        ("add", "[]", 422),
        ("add", "[" * 100_000, 400),
        ("add", '{"urls": ["https://new.example/"], "more": 1}', 422),
        ("pause", '{"urls": ["https://a.example/00000"], "host": "a.example"}', 422),
        ("pause", '{"host": "nowhere.example"}', 422),
        ("remove", '{"urls": ["https://nowhere.example/"]}', 422),
    ],
)
def test_wishes_that_make_no_sense_do_nothing(
    client: httpx.Client, served: Served, wish: str, body: str, status: int
) -> None:
    with Sqlite(served.store, create=False) as store:
        before = store.totals()
    headers = bearer(served.act) | {"Content-Type": "application/json"}
    answer = client.post(f"/api/v1/{wish}", content=body, headers=headers)
    assert answer.status_code == status, answer.text
    assert client.post(f"/api/v1/{wish}", content=body, headers=bearer(served.act)).status_code == 415
    with Sqlite(served.store, create=False) as store:
        assert store.totals() == before


def test_forms_act_for_who_signed_in_and_for_nobody_else(client: httpx.Client, served: Served) -> None:
    own = {"Origin": served.base}
    form = {"urls": "https://new.example/a", "importance": "x3"}
    assert client.post("/do/add", data=form, headers=own).status_code == 403
    assert client.post("/sign-in", data={"token": "afresh_wrong"}, headers=own).status_code == 401
    assert client.post("/sign-in", data={"token": served.act}).status_code == 403  # from nowhere
    elsewhere = {"Origin": "https://evil.example"}
    assert client.post("/sign-in", data={"token": served.act}, headers=elsewhere).status_code == 403
    signed = client.post("/sign-in", data={"token": served.act}, headers=own)
    assert signed.status_code == 303
    assert {"HttpOnly", "SameSite=Strict"} <= {part.strip() for part in signed.headers["set-cookie"].split(";")}
    assert served.act not in signed.headers["set-cookie"]
    key = re.search(r'name="form_key" value="([^"]+)"', get(client, "/pages").text)
    assert key
    form["form_key"] = key[1]
    for headers in (elsewhere, {"Origin": "null"}, {}):
        assert client.post("/do/add", data=form, headers=headers).status_code == 403
    assert client.post("/do/add", data={**form, "form_key": "another"}, headers=own).status_code == 403
    assert client.post("/api/v1/pause", json={"host": "a.example"}, headers=own).status_code == 401  # forms alone
    done = client.post("/do/add", data=form, headers=own)
    assert done.status_code == 303, done.text
    assert "importance x3" in get(client, done.headers["location"]).text
    assert client.post("/do/remove", data=form, headers=own).headers["location"] == "/pages?said=remove"
    assert get(client, "/pages?said=remove").status_code == 200
    assert client.get("/page?url=https%3A%2F%2Fnew.example%2Fa", headers={"Accept": "text/html"}).status_code == 404
    client.post("/sign-out", headers=own)
    assert client.post("/do/add", data=form, headers=own).status_code == 403


@pytest.mark.parametrize(
    "other", ["a=b", 'seen={"a": 1}', 'name="not closed', "two words=1", f"long={'x' * 6000}", "afresh_console=other"]
)
def test_cookies_of_other_programs_on_the_machine_sign_nobody_out(served: Served, other: str) -> None:
    own = {"Origin": served.base}
    with httpx.Client(base_url=served.base) as client:
        signed = client.post("/sign-in", data={"token": served.act}, headers=own)
    cookie = signed.headers["set-cookie"].partition(";")[0]
    for headers in ({"Cookie": f"{other}; {cookie}"}, {"Cookie": f"{cookie}; {other}"}):
        assert "/sign-out" in httpx.get(f"{served.base}/pages", headers=headers).text


def test_where_it_is_public_reading_needs_a_token(tmp_path: Path) -> None:
    fill(tmp_path / "s.db", pages=4)
    with console(tmp_path, public_url="https://crawl.example") as it, httpx.Client(base_url=it.base) as client:
        for path in ("/", "/pages", "/api/v1/pages", "/metrics", "/changes.atom"):
            assert client.get(path).status_code == 401, path
        assert client.get("/api/v1/pages", headers=bearer(it.read) | {"Host": "crawl.example"}).status_code == 200
        assert client.get("/api/v1/pages", headers=bearer(it.signal)).status_code == 403
        headers = {"Origin": "https://crawl.example", "Host": "crawl.example"}
        signed = client.post("/sign-in", data={"token": it.read}, headers=headers)
        assert "Secure" in signed.headers["set-cookie"]
        # Nothing runs on this store: it only reads.
        refused = client.post("/api/v1/pause", json={"host": "a.example"}, headers=bearer(it.act))
        assert (refused.status_code, "only reads" in refused.text) == (422, True)


def luminance(colour: str) -> float:
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (x / 12.92 if x <= 0.03928 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_words_and_shapes_stand_out_in_light_and_dark() -> None:
    css = (Path(offers.__file__).parent / "static" / "console.css").read_text()
    light, dark = (dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", part)) for part in css.split("@media (prefers", 1))
    words = [("ink", "ground"), ("ink", "card"), ("soft", "ground"), ("soft", "card"), ("accent", "card")]
    words += [("accent", "ground"), ("card", "accent"), ("warm", "card"), ("bad", "card")]
    words += [(name, f"{name}-soft") for name in ("accent", "warm", "bad", "new")]
    shapes = [("bar", "card"), ("new", "card"), ("soft", "card")]
    for colours in (light, dark):
        for pairs, least in ((words, 4.5), (shapes, 3.0)):  # WCAG 2, level AA
            for one, other in pairs:
                bright, dim = sorted((luminance(colours[one]), luminance(colours[other])), reverse=True)
                assert (bright + 0.05) / (dim + 0.05) >= least, (one, other)
