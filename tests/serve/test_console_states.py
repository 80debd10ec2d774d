"""Pages that are gone or paused, and what cannot be used: every list and figure says the same of them."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from afresh.store import PageState, Record, Sqlite
from afresh.store.messages import PAUSED, Pauses
from afresh.types import Beliefs, Copy, Crawl, Outcome, Page
from consoles import CHANGED, NOW, console, fill

GONE, GONE_BEFORE, FAILS, WELL = (f"https://a.example/{name}" for name in ("gone", "gone-before", "fails", "well"))
PAUSED_HOST, PAUSED_PAGE = "https://b.example/", "https://c.example/"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    folder: Path = tmp_path_factory.mktemp("states")
    ends = {
        GONE: [Outcome.GONE],
        GONE_BEFORE: [Outcome.GONE, Outcome.FAILED],
        FAILS: [Outcome.FAILED],
        WELL: [],
        PAUSED_HOST: [],
        PAUSED_PAGE: [],
    }
    with Sqlite(folder / "s.db") as store:
        for url, then in ends.items():
            page = Page(url, url.split("/")[2], NOW, paused=url == PAUSED_PAGE)
            state = PageState(page, beliefs=Beliefs(1.0, 1e-9), fetched=NOW, checked=NOW, crawls=1)
            copy = Copy(url, b"<p>text</p>", "text/html", NOW, NOW)
            store.write([Record(Crawl(url, NOW, Outcome.NEW, size=11), state, copy)], pages=[page])
            for nth, outcome in enumerate(then, start=1):
                status, reason = (404, "") if outcome is Outcome.GONE else (0, "timeout")
                crawl = Crawl(url, NOW + nth, outcome, reason=reason, status=status)
                after = PageState(
                    page, beliefs=Beliefs(1.0, 1e-9), fetched=NOW, checked=NOW, crawls=1 + nth, failures=1
                )
                store.write([Record(crawl, after)])
        store.put({PAUSED: Pauses(hosts=frozenset({"b.example"})).to_text()})
    with console(folder) as served, httpx.Client(base_url=served.base, timeout=60) as made:
        yield made


def test_a_gone_page_is_fresh_nowhere(client: httpx.Client) -> None:
    listed = {each["url"]: each for each in client.get("/api/v1/pages").json()["pages"]}
    for url in (GONE, GONE_BEFORE):
        assert (listed[url]["gone"], listed[url]["fresh_probability"]) == (True, 0.0)
        page = client.get("/api/v1/page", params={"url": url}).json()
        assert page["copy"]["fresh_probability"] == 0.0
    assert not listed[FAILS]["gone"]
    assert listed[FAILS]["fresh_probability"] > 0.5
    beside = {each["url"]: each for each in client.get("/api/v1/page", params={"url": WELL}).json()["siblings"]}
    assert set(beside) == {GONE, GONE_BEFORE, FAILS}
    for url, each in beside.items():
        assert each["gone"] == listed[url]["gone"]
        assert each["fresh_probability"] == pytest.approx(listed[url]["fresh_probability"], rel=1e-4)


def test_a_gone_page_is_not_fresh_among_all_and_does_not_fail(client: httpx.Client) -> None:
    said = client.get("/api/v1/collection").json()
    assert said["expected_freshness"] == pytest.approx(5 / 6, abs=0.01), "the last crawl of one found it gone"
    assert (said["gone"], sum(said["failing"].values())) == (1, 2)
    text = client.get("/", headers={"Accept": "text/html"}).text
    assert '<dt>Failing</dt><dd><a href="/pages?state=failing">2</a></dd>' in text
    assert '<a href="/pages?state=gone">1 gone</a>' in text


def test_pages_are_chosen_by_their_state(client: httpx.Client) -> None:
    def listed(**asked: str) -> list[str]:
        return [each["url"] for each in client.get("/api/v1/pages", params=asked).json()["pages"]]

    everything = client.get("/api/v1/pages").json()["pages"]
    assert {each["url"]: each["gone_since"] for each in everything if each["gone"]} == {
        GONE: NOW + 1,
        GONE_BEFORE: NOW + 1,
    }
    assert set(listed(state="gone")) == {GONE, GONE_BEFORE} == set(listed(state="gone", host="a.example"))
    assert listed(state="gone", host="b.example") == []
    assert listed(state="failing") == [FAILS]
    assert set(listed(state="stale")) == {GONE, GONE_BEFORE}
    assert set(listed(state="fresh")) == {FAILS, WELL, PAUSED_HOST, PAUSED_PAGE}
    text = client.get("/pages?state=gone", headers={"Accept": "text/html"}).text
    assert 'option value="gone" selected' in text
    assert "gone, the latest first" in text
    assert (
        "the latest first" not in client.get("/pages?state=gone&host=a.example", headers={"Accept": "text/html"}).text
    )
    assert (text.count(">gone</span>"), FAILS in text) == (2, False)


def test_pages_of_a_paused_host_are_said_to_be_paused(client: httpx.Client) -> None:
    listed = {each["url"]: each["paused"] for each in client.get("/api/v1/pages").json()["pages"]}
    assert {url for url, paused in listed.items() if paused} == {PAUSED_HOST, PAUSED_PAGE}
    own = client.get("/api/v1/pages?state=paused").json()["pages"]
    assert [each["url"] for each in own] == [PAUSED_PAGE]
    metrics = client.get("/metrics").text
    for line in ("afresh_paused 0.0", "afresh_paused_hosts 1.0", "afresh_paused_pages 1.0", "afresh_up 0.0"):
        assert f"\n{line}\n" in metrics


def test_what_is_taken_is_told_in_words(client: httpx.Client) -> None:
    said = client.get("/api/v1/pages?state=sideways").json()["detail"]
    assert said.endswith("It takes copy, without, fresh, stale, failing, gone, paused.")
    said = client.get("/api/v1/changes?after=-1").json()["detail"]
    assert said.endswith("It takes a whole number from 0 to 4611686018427387903.")
    assert json.loads(client.get("/api/v1/plan?budget=-1").text)["detail"].endswith("a number from 1e-09 to 1e+06.")


def test_what_is_damaged_of_one_page_hides_neither_the_rest_of_it_nor_the_changes_behind_it(tmp_path: Path) -> None:
    fill(tmp_path / "s.db", pages=4)
    with console(tmp_path) as it, httpx.Client(base_url=it.base) as client:
        with Sqlite(it.store, create=False) as store, store.writing() as connection:
            connection.execute("UPDATE versions SET body = x'00'")
        page = client.get("/page", params={"url": CHANGED}, headers={"Accept": "text/html"})
        assert page.status_code == 200
        assert "is damaged" in page.text
        assert client.get("/api/v1/diff", params={"url": CHANGED}).status_code == 503
        with Sqlite(it.store, create=False) as store, store.writing() as connection:
            connection.execute("UPDATE pages SET change_rate = -1e308 WHERE url = ?", (CHANGED,))
        answer = client.get("/api/v1/changes?blocks=true")
        told = {each["number"]: each for each in map(json.loads, answer.text.splitlines())}
        of_it = [each["blocks"] for each in told.values() if each["url"] == CHANGED]
        assert of_it == [None, None]
        assert len(told) > len(of_it)
