"""What two parsers could read in two ways is refused on a real socket, and never reaches the origin (P1, P2)."""

import asyncio
import re

from serving import Heard, Told, serving

END = b"\r\n\r\n"
SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: a.example\r\n\r\n"


def post(
    *lines: bytes, body: bytes = b"", start: bytes = b"POST /p HTTP/1.1", host: bytes = b"Host: a.example"
) -> bytes:
    return b"\r\n".join([start, *([host] if host else []), *lines]) + END + body


CHUNKED = b"Transfer-Encoding: chunked"
ZERO = b"0\r\n\r\n"


def chunks(body: bytes) -> bytes:
    return post(CHUNKED, body=body)


AMBIGUOUS: dict[str, bytes] = {
    # Two ways to say where the body ends.
    "length beside chunks": post(b"Content-Length: 5", CHUNKED, body=ZERO + SMUGGLED),
    "chunks beside length": post(CHUNKED, b"Content-Length: 5", body=ZERO + SMUGGLED),
    "length 0 beside chunks": post(b"Content-Length: 0", CHUNKED, body=ZERO + SMUGGLED),
    "two lengths": post(b"Content-Length: 5", b"Content-Length: 6", body=b"abcdef" + SMUGGLED),
    "two equal lengths": post(b"Content-Length: 5", b"Content-Length: 5", body=b"abcde" + SMUGGLED),
    "two lengths in a line": post(b"Content-Length: 5, 5", body=b"abcde" + SMUGGLED),
    "two different lengths in a line": post(b"Content-Length: 5, 46", body=b"abcde" + SMUGGLED),
    "a length in other letters": post(b"content-length: 5", b"CONTENT-LENGTH: 0", body=b"abcde"),
    "chunks on GET beside length": post(b"Content-Length: 4", CHUNKED, start=b"GET /p HTTP/1.1", body=ZERO),
    # Numbers that are almost numbers.
    "a signed length": post(b"Content-Length: +5", body=b"abcde"),
    "a negative length": post(b"Content-Length: -1", body=b"abcde"),
    "a length with an underscore": post(b"Content-Length: 1_0", body=b"abcdeabcde"),
    "a hexadecimal length": post(b"Content-Length: 0x5", body=b"abcde"),
    "no length": post(b"Content-Length:", body=b"abcde"),
    "a blank length": post(b"Content-Length:   ", body=b"abcde"),
    "a length with a point": post(b"Content-Length: 5.0", body=b"abcde"),
    "a length with an exponent": post(b"Content-Length: 1e1", body=b"abcdeabcde"),
    "a length in quotes": post(b'Content-Length: "5"', body=b"abcde"),
    "a length with a letter": post(b"Content-Length: 5a", body=b"abcde"),
    "a length with a blank inside": post(b"Content-Length: 1 0", body=b"abcdeabcde"),
    "digits of another script": post("Content-Length: \u0665".encode(), body=b"abcde"),
    "a length beyond 64 bits": post(b"Content-Length: 18446744073709551621", body=b"abcde"),
    "a length of 100 digits": post(b"Content-Length: " + b"9" * 100, body=b"abcde"),
    # Transfer codings.
    "a coding before chunked": post(b"Transfer-Encoding: gzip, chunked", body=ZERO),
    "a coding after chunked": post(b"Transfer-Encoding: chunked, identity", body=ZERO),
    "chunked twice": post(b"Transfer-Encoding: chunked, chunked", body=ZERO),
    "chunked in two lines": post(CHUNKED, CHUNKED, body=ZERO),
    "chunked and identity in two lines": post(CHUNKED, b"Transfer-Encoding: identity", body=ZERO),
    "identity": post(b"Transfer-Encoding: identity", b"Content-Length: 5", body=b"abcde"),
    "only another coding": post(b"Transfer-Encoding: gzip", body=b"abcde"),
    "nearly chunked": post(b"Transfer-Encoding: xchunked", body=ZERO),
    "chunked with a vertical tab": post(b"Transfer-Encoding: \x0bchunked", body=ZERO),
    "chunked with a form feed": post(b"Transfer-Encoding: chunked\x0c", body=ZERO),
    "chunked in quotes": post(b'Transfer-Encoding: "chunked"', body=ZERO),
    "chunked with a parameter": post(b"Transfer-Encoding: chunked;q=1", body=ZERO),
    "an empty coding": post(b"Transfer-Encoding:", b"Content-Length: 5", body=b"abcde"),
    "chunked with a comma": post(b"Transfer-Encoding: ,chunked", body=ZERO),
    "chunked in HTTP/1.0": post(CHUNKED, start=b"POST /p HTTP/1.0", body=ZERO),
    # Names that something behind could take for another.
    "a blank before the colon": post(b"Transfer-Encoding : chunked", body=ZERO),
    "a tab before the colon": post(b"Content-Length\t: 5", body=b"abcde"),
    "an underscore for a dash": post(b"Transfer_Encoding: chunked", b"Content-Length: 5", body=b"abcde"),
    "another underscore for a dash": post(b"Content_Length: 5", body=b""),
    "NUL in a name": post(b"Content-Len\x00gth: 5", body=b"abcde"),
    "a name beyond ASCII": post("Transfer-Encoding\u00e9: chunked".encode(), body=ZERO),
    "an empty name": post(b": chunked", body=b""),
    "a line without a colon": post(b"Transfer-Encoding chunked", body=b""),
    # Lines.
    "bare line feeds": b"GET /p HTTP/1.1\nHost: a.example\n\n",
    "one bare line feed": b"GET /p HTTP/1.1\r\nHost: a.example\nX: y\r\n\r\n",
    "a bare line feed at the end": b"GET /p HTTP/1.1\r\nHost: a.example\r\n\n",
    "a bare carriage return": b"GET /p HTTP/1.1\r\nHost: a.example\rX: y\r\n\r\n",
    "a folded line": post(b"X: y", b" Transfer-Encoding: chunked", body=ZERO),
    "a folded coding": post(b"Transfer-Encoding:", b" chunked", body=ZERO),
    "a folded line with a tab": post(b"X: y", b"\tz", body=b""),
    "a blank before the first field": b"GET /p HTTP/1.1\r\n X: y\r\nHost: a.example\r\n\r\n",
    "NUL in a value": post(b"X: a\x00b", body=b""),
    "a control character in a value": post(b"X: a\x01b", body=b""),
    "DEL in a value": post(b"X: a\x7fb", body=b""),
    # Chunks.
    "a chunk of no digits": chunks(b"\r\nabc\r\n" + ZERO),
    "a signed chunk": chunks(b"+3\r\nabc\r\n" + ZERO),
    "a negative chunk": chunks(b"-1\r\nabc\r\n" + ZERO),
    "a chunk with 0x": chunks(b"0x3\r\nabc\r\n" + ZERO),
    "a chunk with an underscore": chunks(b"0_3\r\nabc\r\n" + ZERO),
    "a chunk with a blank before": chunks(b" 3\r\nabc\r\n" + ZERO),
    "a chunk with a blank behind": chunks(b"3 \r\nabc\r\n" + ZERO),
    "a chunk beyond 64 bits": chunks(b"10000000000000003\r\nabc\r\n" + ZERO),
    "a chunk that ends in a line feed": chunks(b"3\nabc\r\n" + ZERO),
    "a chunk whose data ends elsewhere": chunks(b"3\r\nabcd\r\n" + ZERO),
    "a chunk whose data ends in a line feed": chunks(b"3\r\nabc\n" + ZERO),
    "a chunk extension with a line feed": chunks(b"3;a\nb\r\nabc\r\n" + ZERO),
    "a chunk extension with NUL": chunks(b"3;a=\x00\r\nabc\r\n" + ZERO),
    "a chunk in digits of another script": chunks("\uff13\r\nabc\r\n".encode() + ZERO),
    "a length in the trailer": chunks(b"3\r\nabc\r\n0\r\nContent-Length: 46\r\n\r\n" + SMUGGLED),
    # Hosts.
    "no host": post(host=b"", start=b"GET /p HTTP/1.1"),
    "two hosts": post(b"Host: b.example", start=b"GET /p HTTP/1.1"),
    "two equal hosts": post(b"Host: a.example", start=b"GET /p HTTP/1.1"),
    "two hosts in a line": post(host=b"Host: a.example, b.example", start=b"GET /p HTTP/1.1"),
    "a host with a path": post(host=b"Host: a.example/p", start=b"GET /p HTTP/1.1"),
    "a host with a user": post(host=b"Host: u@a.example", start=b"GET /p HTTP/1.1"),
    "a host with a blank": post(host=b"Host: a.example b", start=b"GET /p HTTP/1.1"),
    "an empty host": post(host=b"Host:", start=b"GET /p HTTP/1.1"),
    "a host with a port that is none": post(host=b"Host: a.example:80x", start=b"GET /p HTTP/1.1"),
    "an address against the host": post(start=b"GET http://b.example/p HTTP/1.1"),
    "an address with a user": post(start=b"GET http://a.example@b.example/p HTTP/1.1"),
    "an address without a host": post(start=b"GET http:///p HTTP/1.1"),
    "an address with a backslash": post(start=b"GET http://a.example\\@b.example/ HTTP/1.1"),
    # The first line.
    "two blanks": post(start=b"GET  /p HTTP/1.1"),
    "a tab for a blank": post(start=b"GET\t/p HTTP/1.1"),
    "a blank in the address": post(start=b"GET /p q HTTP/1.1"),
    "no version": b"GET /p\r\n\r\n",
    "HTTP/0.9 with a version": post(start=b"GET /p HTTP/0.9"),
    "HTTP/2.0": post(start=b"GET /p HTTP/2.0"),
    "HTTP/1.2": post(start=b"GET /p HTTP/1.2"),
    "HTTP/1.10": post(start=b"GET /p HTTP/1.10"),
    "http in small letters": post(start=b"GET /p http/1.1"),
    "another protocol": post(start=b"GET /p RTSP/1.0"),
    "a method in small letters": post(start=b"get /p HTTP/1.1"),
    "a method that is none": post(start=b"GE(T /p HTTP/1.1"),
    "a method of one's own": post(start=b"SMUGGLE /p HTTP/1.1"),
    "TRACE": post(start=b"TRACE /p HTTP/1.1"),
    "the preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a fragment": post(start=b"GET /p#q HTTP/1.1"),
    "no slash": post(start=b"GET p HTTP/1.1"),
    "an asterisk on GET": post(start=b"GET * HTTP/1.1"),
    "NUL in the address": post(start=b"GET /\x00p HTTP/1.1"),
    "bytes beyond ASCII in the address": post(start="GET /\u00e9 HTTP/1.1".encode()),
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(40),
    "an expectation that nobody knows": post(b"Expect: 200-ok", b"Content-Length: 5", body=b"abcde"),
}


async def _refused() -> list[str]:
    wrong = []
    async with serving(lambda heard: Told(body=heard.target.encode())) as proxy:

        async def one(name: str, sent: bytes) -> None:
            got = await proxy.raw(sent, seconds=5)
            statuses = re.findall(rb"^HTTP/1\.1 (\d\d\d) ", got, flags=re.MULTILINE)
            if len(statuses) != 1 or not 400 <= int(statuses[0]) <= 505 or statuses[0] in (b"500", b"502", b"504"):
                wrong.append(f"{name}: {statuses}")
            elif b"Connection: close" not in got:
                wrong.append(f"{name}: not closed")

        await asyncio.gather(*(one(name, sent) for name, sent in AMBIGUOUS.items()))
        wrong += [f"heard {heard.raw!r}" for heard in proxy.origin.heard if heard.method != "POST"]
        # A body in chunks may have begun on its way: it never comes to its end.
        wrong += [f"heard whole {heard.raw!r}" for heard in proxy.origin.heard]
    return wrong


def test_what_is_ambiguous_is_refused_and_closed() -> None:
    assert len(AMBIGUOUS) >= 100
    wrong = asyncio.run(_refused())
    assert not wrong, "\n".join(wrong)


FINE: dict[str, bytes] = {
    "lower case": post(b"content-length: 5", body=b"abcde"),
    "no blank": post(b"Content-Length:5", body=b"abcde"),
    "leading zeros": post(b"Content-Length: 0005", body=b"abcde"),
    "blanks around": post(b"Content-Length: \t 5 \t", body=b"abcde"),
    "chunked in capitals": post(b"TRANSFER-ENCODING: CHUNKED", body=b"5\r\nabcde\r\n0\r\n\r\n"),
    "leading zeros of a chunk": chunks(b"0005\r\nabcde\r\n0\r\n\r\n"),
    "capital digits of a chunk": chunks(b"5;a=b\r\nabcde\r\n000\r\n\r\n"),
    "a trailer": chunks(b"5\r\nabcde\r\n0\r\nHost: b.example\r\nX: y\r\n\r\n"),
    "an absolute address": post(b"Content-Length: 5", start=b"POST http://a.example/p HTTP/1.1", body=b"abcde"),
    "an empty line before": b"\r\n" + post(b"Content-Length: 5", body=b"abcde"),
}


async def _taken() -> None:
    # What stands behind is another request, and nothing of it is lost or mixed up.
    async with serving(
        lambda heard: Told(body=heard.method.encode() + heard.target.encode() + heard.body),
        settings='[[serve]]\nhost = "a.example"\norigin = "{origin}"\nstrict = true\n',
    ) as proxy:
        for name, sent in FINE.items():
            reader = await proxy.reader()
            await reader.send(sent + SMUGGLED)
            bodies = [(await reader.answer()).body for _ in range(2)]
            assert bodies == [b"POST/pabcde", b"GET/smuggled"], name
            reader.close()


def test_what_is_plain_is_taken() -> None:
    asyncio.run(_taken())


async def _answers() -> None:
    """An origin that answers in two ways."""
    bad = {
        "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nabcde",
        "length beside chunks": b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "a bare line feed": b"HTTP/1.1 200 OK\nContent-Length: 3\n\nabc",
        "another coding": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc",
        "a line that is folded": b"HTTP/1.1 200 OK\r\nA: b\r\n c\r\nContent-Length: 3\r\n\r\nabc",
        "another protocol": b"RTSP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc",
        "switching protocols": b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n",
    }

    def play(heard: Heard) -> Told:
        return Told(before=bad[heard.target[1:].replace("%20", " ")], cut=False, status=204)

    async with serving(play) as proxy:
        for name in bad:
            got = await proxy.ask("/" + name.replace(" ", "%20"))
            assert got.status in (502, 504), name
        assert len(proxy.parts.service.cache) == 0


def test_an_ambiguous_answer_is_not_handed_on() -> None:
    asyncio.run(_answers())
