"""Rules of others as live schedulers, and every policy that the settings accept."""

import numpy as np
import pytest

from afresh import config
from afresh.cli.build import scheduler_for
from afresh.errors import ConfigError
from afresh.schedule import Pick, Plain
from afresh.schedule.peer_rules import DAY, HOUR, RULES
from afresh.schedule.peers import ByInterval, RefreshProbabilities
from afresh.schedule.wheel.policies import POLICIES


@pytest.mark.parametrize("name", config.POLICIES)
def test_every_named_policy_crawls(name: str) -> None:
    read = config.parse(f'[crawl]\npolicy = "{name}"\nbudget = "10/s"')
    scheduler = scheduler_for(read, 10)
    slots = [scheduler.add(request_rate=1.0, change_rate=0.1, host=nth, now=0.0) for nth in range(10)]
    picked, now = [], 0.0
    for _ in range(400):
        now += 0.05
        pick = scheduler.next(now)
        if isinstance(pick, Pick):
            picked.append(pick.slot)
            scheduler.finish(pick.slot, now, crawled=now)
    assert sorted(picked[:10]) == slots, "new pages come first"
    assert len(picked) > 100, "the budget is spent"


def test_all_names_that_there_are_can_be_used() -> None:
    live = set(POLICIES) - {"threshold"}  # which crawls at no constant rate
    assert set(config.POLICIES) == {"value", "mirror", "refresh-probabilities", *live, *RULES}


def test_other_names_are_refused_with_the_list() -> None:
    with pytest.raises(ConfigError, match=r"no policy 'mirage'.*Known are value, mirror, refresh-prob") as found:
        config.parse('[crawl]\npolicy = "mirage"')
    assert "heritrix" in found.value.hint
    with pytest.raises(ConfigError, match="Did you mean 'heritrix'"):
        config.parse('[crawl]\npolicy = "heritrx"')


def test_a_rule_that_looks_at_every_page_is_not_for_millions() -> None:
    with pytest.raises(ConfigError, match="200,000 pages at most"):
        scheduler_for(config.parse('[crawl]\npolicy = "nutch"'), 1_000_000)


@pytest.mark.parametrize(
    ("name", "unchanged", "changed"),
    [
        ("nutch", 30 * DAY, 30 * DAY),
        ("stormcrawler-adaptive", 1.5 * DAY, 0.5 * DAY + 0.5 * HOUR),
        ("heritrix", 18 * HOUR, 8 * HOUR),
        ("squid", 0.2 * DAY, 0.0),
        ("scrapy", 0.1 * DAY, 0.0),
        ("miniflux", DAY, DAY),
        ("yacy", DAY + 0.5 * DAY, DAY),
    ],
)
def test_intervals_follow_the_published_constants(name: str, unchanged: float, changed: float) -> None:
    for was, expected in ((False, unchanged), (True, changed)):
        rule = ByInterval(RULES[name])
        scheduler = Plain(rule, budget=1.0)
        slot = scheduler.add(request_rate=1.0, change_rate=0.1, now=0.0, age=0.0)
        rule.crawled(slot, scheduler._pages[slot], now=DAY, changed=was)
        assert rule.due(slot, scheduler._pages[slot], price=0.0, now=0.0) == pytest.approx(DAY + expected)


def test_refresh_probabilities_draw_pages_by_what_they_are_worth() -> None:
    rule = RefreshProbabilities(budget=10.0, rng=np.random.default_rng(1))
    scheduler = Plain(rule, budget=10.0)
    for nth, rate in enumerate((16.0, 4.0, 1.0)):
        scheduler.add(request_rate=rate, change_rate=1.0, host=nth, now=0.0, age=1.0)
    counts, now = [0, 0, 0], 0.0
    for _ in range(2_000):
        now += 0.1
        pick = scheduler.next(now)
        if isinstance(pick, Pick):
            counts[pick.slot] += 1
            scheduler.finish(pick.slot, now, crawled=now)
    chances = rule._chances / rule._chances.sum()
    assert np.array(counts) / sum(counts) == pytest.approx(chances, abs=0.04)
    assert counts[0] > counts[1] > counts[2]
