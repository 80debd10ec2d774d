"""Where answers lead: row F8 of the hostile world."""

from ipaddress import ip_network
from typing import Any

import pytest

from afresh.detect import compare
from afresh.fetch import Guard
from afresh.types import Outcome, Validators

PAGE = b'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nETag: "9"\r\n\r\nthere'


def to(location: str, status: int = 302) -> bytes:
    return f"HTTP/1.1 {status} Found\r\nLocation: {location}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()


def test_f8_a_loop_ends_with_the_list_of_hops(stage: Any) -> None:
    got = stage.fetch([to("/a"), to("/b"), to("/")])
    assert got.reason == "redirect_loop"
    assert [hop.rpartition("/")[2] for hop in got.hops] == ["a", "b", ""]
    assert (got.status, len(stage.requests)) == (302, 3)


def test_f8_a_page_that_points_to_itself_is_asked_once(stage: Any) -> None:
    assert stage.fetch(to("/#again")).reason == "redirect_loop"
    assert len(stage.requests) == 1


def test_f8_a_long_chain_ends_with_the_list_of_hops(stage: Any) -> None:
    got = stage.fetch([to(f"/{step}") for step in range(1, 22)] + [PAGE], limits={"redirects": 20})
    assert got.reason == "too_many_redirects"
    assert [hop.rpartition("/")[2] for hop in got.hops] == [str(step) for step in range(1, 22)]
    assert len(stage.requests) == 21  # the last hop is told, not taken
    stage.requests.clear()
    got = stage.fetch([to(f"/{step}") for step in range(1, 21)] + [PAGE], limits={"redirects": 20})
    assert (got.body, len(got.hops), got.location) == (b"there", 20, got.hops[-1])


@pytest.mark.parametrize(
    "target",
    [
        "file:///etc/passwd",
        "ftp://example.com/",
        "javascript:alert(1)",
        "data:text/html,x",
        "about:blank",
        "ws://example.com/",
        "http://",
        "http://[::1",
        "http://user:secret@127.0.0.1/",
        "http://a@b@c/",
        "//user@127.0.0.1/",
        "http://exa mple.com/",
        "http://127.0.0.1:99999/",
        "http://1.2.3.4.5/",
    ],
)
def test_f8_only_the_web_is_followed_and_no_credentials(stage: Any, target: str) -> None:
    got = stage.fetch(to(target))
    assert (got.reason, got.status, len(stage.requests)) == ("bad_redirect", 302, 1)
    assert compare(Validators(), got).outcome is Outcome.FAILED


def test_f8_two_locations_are_one_too_many(stage: Any) -> None:
    both = to("/a").replace(b"Content-Length", b"Location: /b\r\nContent-Length")
    assert stage.fetch(both).reason == "bad_redirect"


def test_f8_a_redirect_to_a_private_address_is_refused_at_its_hop(stage: Any) -> None:
    guard = Guard(networks=(ip_network("127.0.0.1/32"),))
    for target in (
        "http://127.0.0.2:{port}/",
        "http://2130706434:{port}/",
        "http://localhost.:1/",
        "http://[::1]:8080/",
    ):
        stage.requests.clear()

        async def answer(reader: Any, writer: Any, target: str = target) -> None:
            writer.write(to(target.format(port=stage.port)))

        got = stage.fetch(answer, guard=guard)
        assert got.reason in ("refused_address", "refused_port")
        assert (len(got.hops), len(stage.requests)) == (1, 1)
        assert compare(Validators(), got).outcome is Outcome.REFUSED


def test_f8_a_redirect_to_a_closed_port_is_refused_at_its_hop(stage: Any) -> None:
    got = stage.fetch(to("http://127.0.0.1:6379/"))
    assert (got.reason, got.hops) == ("refused_port", ("http://127.0.0.1:6379/",))


def test_f8_nothing_about_us_or_the_page_crosses_to_another_origin(stage: Any) -> None:
    """Neither cookies nor credentials nor validators nor the page we come from; also not to another port or scheme."""
    first = to("http://localhost:{port}/b").replace(b"Content-Length", b"Set-Cookie: id=1; Path=/\r\nContent-Length")

    async def answer(reader: Any, writer: Any) -> None:
        writer.write(first.replace(b"{port}", str(stage.port).encode()) if len(stage.requests) == 1 else PAGE)

    got = stage.fetch(answer, known=Validators(etag='"1"', fingerprint=5))
    assert got.body == b"there"
    assert "If-None-Match" in stage.requests[0]
    sent = {line.split(":")[0] for line in stage.requests[1].strip().split("\r\n")[1:]}
    assert sent == {"Host", "User-Agent", "Accept", "Accept-Encoding"}


def test_a_page_behind_a_redirect_has_no_validators_of_its_own(stage: Any) -> None:
    """They belong to the other address, and would be sent to this one."""
    assert stage.fetch(PAGE).validators.etag == '"9"'
    stage.requests.clear()
    got = stage.fetch([to("/moved"), PAGE])
    assert (got.body, got.validators) == (b"there", Validators())


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_every_kind_of_redirect_is_followed(stage: Any, status: int) -> None:
    got = stage.fetch([to("/x?a=%41&b=|", status), PAGE])
    assert got.body == b"there"
    assert stage.requests[1].startswith("GET /x?a=%41&b=| HTTP/1.1")  # as written, not as a library would write it


def test_bytes_beyond_ascii_in_a_location_are_escaped_as_they_came(stage: Any) -> None:
    said = to("/caf?").replace(b"?", b"\xe9")
    assert stage.fetch([said, PAGE]).location.endswith("/caf%E9")


def test_a_redirect_that_leads_nowhere_is_an_answer(stage: Any) -> None:
    got = stage.fetch(b"HTTP/1.1 301 Moved\r\nContent-Length: 0\r\n\r\n")
    assert (got.status, got.reason) == (301, "")
    assert compare(Validators(), got).outcome is Outcome.MOVED


def test_what_is_no_url_is_a_value_too(stage: Any) -> None:
    urls = (
        "no url",
        "file:///etc/passwd",
        "http://user:pw@127.0.0.1/",
        "http://",
        "",
        "http://\udcff/",
        "http://a\0b/",
    )
    assert {each.reason for each in stage.fetch_all(PAGE, urls=urls)} == {"bad_url"}
    assert not stage.requests
