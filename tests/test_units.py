import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh import units
from afresh.errors import ConfigError
from afresh.types import Importance


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10s", 10),
        ("1.5 h", 5400),
        ("2 days", 172800),
        ("250ms", 0.25),
        ("7", 7),
        (3, 3),
        (".5min", 30),
        ("1 week", 604800),
    ],
)
def test_durations(text: str | float, seconds: float) -> None:
    assert units.duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "per_second"),
    [("10/s", 10), ("100/day", 100 / 86400), ("3 per 2h", 3 / 7200), ("0.5", 0.5), (4, 4), ("600/min", 10)],
)
def test_rates(text: str | float, per_second: float) -> None:
    assert units.rate(text) == pytest.approx(per_second)


@pytest.mark.parametrize(("text", "count"), [("64MiB", 2**26), ("1.5GB", 1_500_000_000), ("10", 10), ("4 kib", 4096)])
def test_sizes(text: str, count: int) -> None:
    assert units.size(text) == count


@pytest.mark.parametrize("bad", ["", "-1s", "ten", "10 parsecs", "1e999s", "10/", "/s", "1/0s", "nan", "1" * 400])
@pytest.mark.parametrize("read", [units.duration, units.rate, units.size])
def test_bad_text_is_one_clear_sentence(bad: str, read: object) -> None:
    with pytest.raises(ConfigError) as caught:
        read(bad)  # type: ignore[operator]
    assert caught.value.message.endswith(".")
    assert caught.value.hint


@given(st.floats(min_value=1e-3, max_value=1e10))
def test_a_shown_duration_reads_back(seconds: float) -> None:
    assert units.duration(units.show_duration(seconds)) == pytest.approx(seconds, rel=0.01)


@given(st.floats(min_value=1e-9, max_value=1e6))
def test_a_shown_rate_reads_back(per_second: float) -> None:
    assert units.rate(units.show_rate(per_second)) == pytest.approx(per_second, rel=0.01)


@given(st.floats(min_value=0, max_value=1e14))
def test_a_shown_size_reads_back(count: float) -> None:
    assert units.size(units.show_size(count)) == pytest.approx(count, rel=0.01, abs=1)


def test_never() -> None:
    assert units.show_duration(math.inf) == "never"


@pytest.mark.parametrize("text", ["", "x", "x0", "-1", "inf", "nan", "much", "2e12", "5x", True])
def test_what_is_no_importance_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="not an importance"):
        units.importance(text)


def test_importance_is_a_rate_or_a_factor() -> None:
    assert [units.importance(text) for text in ("0", "2.5", "1e3")] == [Importance(each) for each in (0.0, 2.5, 1000.0)]
    assert [units.importance(text) for text in ("x5", "X 0.5")] == [Importance(5.0, True), Importance(0.5, True)]
