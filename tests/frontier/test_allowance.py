"""What politeness allows of a budget, and the sentence about it."""

import math
from dataclasses import replace

import pytest

from afresh.frontier import Addresses, AddressLimits, Allowance, Lanes, Politeness, Rest, allowance

QUICK = Rest(1.0, "politeness.shortest_gap")
HERE = "192.0.2.1"


def test_hosts_on_one_address_share_its_turns() -> None:
    addresses = Addresses()
    addresses.start(HERE, 0.0)
    addresses.finish(HERE, now=0.05, took=0.05)  # so it rests 0.1 s, and answers in 0.05 s
    found = allowance([(f"h{n}", QUICK) for n in range(50)], lambda host: HERE, addresses.turns)
    assert found.rate == pytest.approx(1 / 0.15)
    assert found.sentence(20.0) == (
        "politeness allows 6.67/s of your 20/s: 50 hosts share one address (politeness.address_share)"
    )
    assert found.sentence(6.0) == ""
    assert Allowance.from_text(found.to_text()) == found


def test_few_hosts_are_asked_no_more_often_than_each_may_be() -> None:
    found = allowance([("a", QUICK), ("b", QUICK)])
    assert found.sentence(20.0) == (
        "politeness allows 2/s of your 20/s: 2 hosts, asked once in 1 s each (politeness.shortest_gap)"
    )
    slow = allowance([("a", Rest(30.0, "Crawl-delay"))])
    assert slow.sentence(1.0) == "politeness allows 2/min of your 1/s: one host, asked once in 30 s (Crawl-delay)"
    assert allowance([("a", Rest(0.0, ""))]).sentence(1e9) == ""
    assert allowance([]).sentence(1.0) == ""


def test_hosts_that_fail_are_not_said_to_be_asked_as_the_others_are() -> None:
    """The rate and the reason follow from each other, also while a site is down."""
    down = Rest(640.0, "failures")
    whole = allowance([(f"h{n}", down) for n in range(50)], lambda host: HERE, lambda address: 0.01)
    assert whole.sentence(20.0) == (
        "politeness allows 36/h of your 20/s: all 50 hosts fail and rest longer (see afresh hosts)"
    )
    half = allowance([(f"h{n}", down if n % 2 else QUICK) for n in range(20)])
    assert half.sentence(20.0) == (
        "politeness allows 10/s of your 20/s: 10 of 20 hosts fail and rest longer (see afresh hosts); "
        "the other 10 hosts, asked once in 1 s each (politeness.shortest_gap)"
    )
    assert allowance([("a", Rest(10.0, "failures")), ("b", QUICK)]).sentence(20.0) == (
        "politeness allows 1.1/s of your 20/s: 1 of 2 hosts fails and rests longer (see afresh hosts); "
        "the other host, asked once in 1 s (politeness.shortest_gap)"
    )
    assert allowance([("a", down)]).sentence(1.0) == (
        "politeness allows 5.62/h of your 1/s: the only host fails and rests longer (see afresh hosts)"
    )
    assert Allowance.from_text(half.to_text()) == half


def test_hosts_that_rest_differently_are_said_to_on_average() -> None:
    found = allowance([("a", QUICK), ("b", QUICK), ("c", Rest(4.0, "politeness.factor"))])
    assert found.sentence(20.0) == (
        "politeness allows 2.25/s of your 20/s: 3 hosts, asked once in 1.33 s on average (politeness.shortest_gap)"
    )


def test_hosts_say_why_they_rest() -> None:
    hosts = Lanes(Politeness())
    for name in "abcde":
        hosts.number(name)
    hosts.wants("d", 20.0)
    hosts.answered("b", failed=False, now=0.0, took=0.5)
    hosts.answered("c", failed=True, now=0.0, took=0.5)
    hosts.answered("d", failed=False, now=0.0, took=0.5)
    hosts.answered("e", failed=False, now=0.0, took=0.01)
    assert hosts.others() == (1, QUICK)  # "a"
    assert dict(hosts.rests()) == {
        "b": Rest(5.0, "politeness.factor"),
        "c": Rest(10.0, "failures"),
        "d": Rest(20.0, "Crawl-delay"),
        "e": QUICK,
    }


def test_hosts_that_were_never_asked_are_counted_and_not_gone_through() -> None:
    """There may be millions of them, and this is reckoned every few seconds."""
    hosts = Lanes(Politeness())
    for number in range(5_000):
        hosts.number(f"h{number}")
    for number in range(10):
        hosts.answered(f"h{number}", failed=number < 3, now=0.0, took=0.2)
    rests = list(hosts.rests())
    assert len(rests) == 10
    each = [(f"h{number}", hosts.rest(f"h{number}")) for number in range(5_000)]
    one_by_one, mine = (
        allowance(each, lambda host: HERE if host in dict(rests) else "", lambda address: 2.0),
        allowance(rests, lambda host: HERE, lambda address: 2.0, hosts.others()),
    )
    assert mine.rate == pytest.approx(one_by_one.rate)
    assert mine.without_addresses == pytest.approx(one_by_one.without_addresses)
    assert mine.mean_rest == pytest.approx(one_by_one.mean_rest)
    same = {"rate": 0.0, "without_addresses": 0.0, "mean_rest": 0.0}
    assert replace(mine, **same) == replace(one_by_one, **same)


def test_a_host_rests_as_long_as_its_answers_take_on_average() -> None:
    """One slow answer must not stand for all: what politeness allows was said to be far less than was crawled."""
    hosts = Lanes(Politeness())
    hosts.number("a")
    for nth in range(100):
        hosts.answered("a", failed=False, now=10.0 * nth, took=0.5 if nth % 10 == 9 else 0.0)
    assert hosts.rest("a").seconds == pytest.approx(1.4, abs=0.6)
    assert hosts.rest("a").because == "politeness.factor"
    for nth in range(40):
        hosts.answered("a", failed=False, now=1000.0 + nth, took=0.0)
    assert hosts.rest("a").seconds == pytest.approx(1.0, abs=1e-3)


def test_what_cannot_be_read_back_is_not_there() -> None:
    for text in (None, "", "[]", "{}", '{"rate": "much"}'):
        assert Allowance.from_text(text) is None
    free = allowance([("a", Rest(0.0, ""))])
    assert free.rate == math.inf
    assert Allowance.from_text(free.to_text()) == free


def test_this_machine_itself_has_no_limits_unless_it_is_told_to() -> None:
    assert not any(Addresses().limits_apply(here) for here in ("127.0.0.1", "127.8.9.1", "::1", ""))
    assert Addresses().limits_apply("10.0.0.1")
    assert Addresses(AddressLimits(loopback=True)).limits_apply("127.0.0.1")


def test_who_waits_for_an_address_comes_again_when_its_turn_is_there() -> None:
    """Whoever is told a moment finds the address rested then: nobody is sent away twice."""
    addresses, took = Addresses(), 0.05
    addresses.start(HERE, 0.0)
    addresses.finish(HERE, now=took, took=took)
    moments = [addresses.later(HERE, took) for _ in range(10)]
    for moment in moments:
        assert addresses.start(HERE, moment + 1e-9)  # a clock is a little late
        addresses.finish(HERE, now=moment + took, took=took)
