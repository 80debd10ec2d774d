import time

import pytest

from afresh.kinds.dates import MAX_PAGE, page_dates


@pytest.mark.parametrize(
    ("body", "dates"),
    [
        (b'<meta content="2026-05-01" property="article:modified_time">', ("2026-05-01",)),
        (
            b'{"dateModified" : "2026-05-01T08:00:00+02:00", "datePublished": "2020-01-01"}',
            ("2026-05-01T08:00:00+02:00",),
        ),
        (b'<meta name=last-modified content="Fri, 01 May 2026 08:00:00 GMT">', ("Fri, 01 May 2026 08:00:00 GMT",)),
        (b'<span itemprop="datePublished" datetime="2020-02-03T04:05Z">', ("2020-02-03T04:05Z",)),
        (b'"dateModified":"x","other":"2026-05-01"', ()),
        (b'<b title="2026-05-01">dateModified</b>', ()),
        (b"dateModified", ()),
        (b"", ()),
        (b" " * MAX_PAGE + b'"dateModified":"2026-05-01"', ()),
    ],
)
def test_dates_are_found_where_they_are_named(body: bytes, dates: tuple[str, ...]) -> None:
    assert page_dates(body) == dates


def test_many_names_take_no_time() -> None:
    began = time.process_time()
    assert page_dates(b'"dateModified":"' * 2_000_000) == ()
    assert time.process_time() - began < 0.5
