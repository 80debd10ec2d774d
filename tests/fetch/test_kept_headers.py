"""What a copy keeps of an answer's head."""

from afresh.fetch.answer import Headers
from afresh.fetch.headers import MAX_KEPT_BYTES, kept


def test_secrets_and_what_speaks_of_the_connection_are_not_kept() -> None:
    lines = [
        (b"Cache-Control", b"max-age=60"),
        (b"Set-Cookie", b"session=secret"),
        (b"Transfer-Encoding", b"chunked"),
        (b"Content-Encoding", b"gzip"),
        (b"X-Odd", b"a\tb\xff"),
    ]
    assert kept(203, Headers(lines)) == {
        ":status": "203",
        "cache-control": "max-age=60",
        "set-cookie": "",
        "x-odd": "ab",
    }


def test_what_is_kept_is_bounded() -> None:
    lines = [(b"X-Long", b"a" * MAX_KEPT_BYTES), *((f"x-{nth}".encode(), b"b" * 1_000) for nth in range(100))]
    head = kept(200, Headers(lines))
    assert "x-long" not in head
    assert sum(len(name) + len(value) for name, value in head.items()) <= MAX_KEPT_BYTES + 20
    assert len(head) > 10
