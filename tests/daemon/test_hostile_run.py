"""The short form of benchmarks/hostile.py: what hostile hosts cost ordinary ones in a live run."""

from pathlib import Path

from hostile_behaviours import EVILS, READING
from hostile_run import Result, bound, crawl, hostile_server

BODY = 1_000_000
SECONDS = 6.0
# These offer pages that are worth a crawl by all that is known of them, and compete with the others' for the budget.
COMPETING = {"names", "domains", "trap", "calendar"}
FETCHING = [name for name in EVILS if name not in READING | COMPETING]


def beside(evils: list[str], folder: Path, tries: int = 3) -> tuple[Result, Result]:
    """A crawl of ordinary hosts alone, and one beside these; again if a busy machine got in between."""
    with hostile_server() as port:
        for nth in range(tries):
            where = folder / str(nth)
            where.mkdir()
            alone = crawl(port, SECONDS, evils=[], body=BODY, folder=where)
            among = crawl(port, SECONDS, evils=evils, body=BODY, folder=where)
            if among.per_minute >= 0.9 * alone.per_minute:
                break
    return alone, among


def test_hosts_that_are_hard_to_fetch_from_cost_ordinary_ones_nothing(tmp_path: Path) -> None:
    assert len(FETCHING) >= 30
    alone, among = beside(FETCHING, tmp_path)
    assert alone.per_minute > 500
    assert among.per_minute >= 0.9 * alone.per_minute
    assert among.peak - alone.peak <= bound(BODY)
    assert "Traceback" not in among.said
    assert not among.late
    assert len(among.evils) >= 30


def test_hosts_that_offer_pages_without_end_compete_and_do_not_starve_others(tmp_path: Path) -> None:
    alone, among = beside(sorted(COMPETING - {"domains"}), tmp_path)
    assert among.per_minute >= 0.6 * alone.per_minute
    assert among.peak - alone.peak <= bound(BODY)
    assert "Traceback" not in among.said
    assert not among.late


def test_domains_without_end_take_no_more_than_their_half(tmp_path: Path) -> None:
    """Half of the budget is for first crawls; refreshes of the new pages have a part of the other half, too."""
    alone, among = beside(["domains"], tmp_path)
    assert among.per_minute >= 0.4 * alone.per_minute
    assert "Traceback" not in among.said


def test_pages_that_are_hard_to_read_cost_ordinary_hosts_nothing(tmp_path: Path) -> None:
    alone, among = beside(sorted(READING), tmp_path)
    assert among.per_minute >= 0.9 * alone.per_minute
    assert among.peak - alone.peak <= bound(BODY)
    assert "Traceback" not in among.said
    assert not among.late
