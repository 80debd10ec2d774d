from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.signals.moments import moment

MOMENTS = st.datetimes(datetime.fromisoformat("1971-01-01"), datetime.fromisoformat("2200-01-01"))
ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(MOMENTS, ZONES)
def test_what_the_standards_write_is_read(when: datetime, zone: timezone) -> None:
    there = when.replace(tzinfo=zone)
    assert moment(there.isoformat()) == pytest.approx(there.timestamp(), abs=1e-5)
    assert moment(there.isoformat(" ", "seconds")) == there.replace(microsecond=0).timestamp()
    assert moment(format_datetime(there)) == there.replace(microsecond=0).timestamp()
    assert moment(when.isoformat()) == pytest.approx(when.replace(tzinfo=UTC).timestamp(), abs=1e-5)


@pytest.mark.parametrize(
    ("written", "day"),
    [
        ("2024", (2024, 1, 1)),
        ("2024-05", (2024, 5, 1)),
        ("2024-05-06", (2024, 5, 6)),
        ("20240506", (2024, 5, 6)),
        (" 2024-05-06T00:00Z\n", (2024, 5, 6)),
        ("2024-05-06t00:00:00z", (2024, 5, 6)),
        ("2024-05-06T02:00+02:00", (2024, 5, 6)),
        ("Mon, 06 May 2024 00:00:00 GMT", (2024, 5, 6)),
        ("06 May 24 00:00:00", (2024, 5, 6)),
    ],
)
def test_many_spellings(written: str, day: tuple[int, int, int]) -> None:
    assert moment(written) == datetime(*day, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    "written",
    ["", "soon", "2024-13-01", "2024-02-31", "0000-00-00", "9" * 100, "-1", "Mon, 99 May 2024", "\u0662"],
)
def test_what_is_no_moment_is_none(written: str) -> None:
    assert moment(written) is None


@given(st.text(max_size=80) | st.text("0123456789-:TZ+. ", max_size=40))
def test_nothing_raises(written: str) -> None:
    found = moment(written)
    assert found is None or isinstance(found, float)
