import random
import tracemalloc
from itertools import count

from afresh.frontier import Scope, Traps
from afresh.sources.web import Discovery
from afresh.types import Fetched, Page

TRAP = "http://trap.example"


def page_of(urls: list[str]) -> Fetched:
    body = "".join(f'<a href="{url}">x</a>' for url in urls).encode()
    return Fetched(TRAP + "/", 0.0, 0.0, status=200, body=body, content_type="text/html")


def test_t1_what_an_endless_trap_offers_beyond_its_caps_takes_no_memory() -> None:
    """A page whose links are new at every fetch, fetched for ever."""
    discovery = Discovery(Scope(traps=Traps(pattern=500, variants=100, pages_per_host=2_000)))
    number, rng, front = count(), random.Random(1), Page(TRAP + "/", "trap.example")

    def offer(times: int) -> None:
        for _ in range(times):
            numbers = [next(number) for _ in range(200)]
            urls = [f"/missing/{n}" for n in numbers] + [f"/list?page={n}" for n in numbers]
            urls += ["/" + "".join(rng.choices("abcdefghijkl", k=12)) for _ in numbers]
            discovery.read(front, page_of(urls))

    offer(115)  # 69,000 addresses: every bounded table is full by now
    seen = len(discovery._seen)
    assert discovery.known == 2_000
    tracemalloc.start()
    offer(40)
    after, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(discovery._seen) == seen <= 2_600, "one page may go over, no more"
    assert discovery.known == 2_000
    assert after < 20_000_000, "links as written are remembered in a bounded cache, which begins anew"
    assert peak < 25_000_000


def test_pages_beyond_a_cap_that_are_kept_already_are_known() -> None:
    discovery = Discovery(Scope(traps=Traps(pattern=3)))
    urls = [f"{TRAP}/{number}" for number in range(5)]
    discovery.know(urls)
    assert discovery.known == 5
    found = discovery.read(Page(TRAP + "/", "trap.example"), page_of([*urls, f"{TRAP}/6", f"{TRAP}/a"]))
    assert [page.url for page in found] == [f"{TRAP}/a"]
    assert discovery.refused == {"pattern": 1}


def test_a_listed_page_is_one_step_away_and_found_once() -> None:
    discovery = Discovery(Scope(hosts=["trap.example"], depth=1))
    found = [discovery.listed([f"{TRAP}/a", f"{TRAP}/b", "http://other.example/"], 7.0) for _ in range(2)]
    assert found[1] == []
    assert found[0] == [Page(f"{TRAP}/{name}", "trap.example", added=7.0, depth=1) for name in "ab"]
    assert discovery.refused == {"host": 2}
