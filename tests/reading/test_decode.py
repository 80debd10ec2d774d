import codecs
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.reading import encoding, utf8
from afresh.reading.labels import CODECS, MULTIBYTE

# Python's own codecs that no page may name: some are no text encodings, some take time in the square of the text.
FOREIGN = [
    *("punycode", "idna", "base64", "bz2", "hex", "quopri", "rot13", "uu", "zlib", "unicode_escape", "utf-7", "utf-32"),
    *(
        "raw_unicode_escape",
        "undefined",
        "mbcs",
        "oem",
        "cp037",
        "cp500",
        "hz-gb-2312",
        "iso-2022-kr",
        "unicode-escape",
    ),
]


@pytest.mark.parametrize("label", FOREIGN)
def test_no_page_names_a_codec_of_python(label: str) -> None:
    assert encoding(label) is None
    body = "ü &amp; <p>".encode()
    assert utf8(body, f"text/html; charset={label}") == body
    declared = f"<meta charset={label}>".encode() + body
    assert utf8(declared) == declared


def test_a_charset_of_punycode_costs_no_more_than_any_other() -> None:
    """Decoding it took time in the square of the body."""
    body = b"a" * 499_990 + b"-" + b"b" * 500
    began = time.process_time()
    assert utf8(body, "text/html; charset=punycode") == body
    assert time.process_time() - began < 0.1


def test_every_label_leads_to_a_codec_and_no_label_stands_twice() -> None:
    assert len(CODECS) == 228 - 6  # those of the standard without `replacement`'s
    for label, codec in CODECS.items():
        assert codec == "x-user-defined" or codecs.lookup(codec)
        assert encoding(f"\t{label.upper()}\n") == codec


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        ("ü".encode("utf-8-sig"), "text/html; charset=latin1", "ü"),
        ("ü".encode("utf-16"), "text/html; charset=utf-8", "ü"),
        (codecs.BOM_UTF16_BE + "𝄞ü".encode("utf-16-be"), "", "𝄞ü"),
        ("<p>ü".encode("utf-16-le"), "text/html; charset=utf-16", "<p>ü"),
        ("ü".encode(), "text/html; charset=utf-16", "ü"),
        ("ü€".encode("cp1252"), 'text/html; charset="iso-8859-1"', "ü€"),
        ("ж".encode("koi8-r"), "text/html;charset=KOI8-R; x=y", "ж"),
        ("<meta charset='x-sjis'>日本".encode("cp932"), "", "<meta charset='x-sjis'>日本"),
        (
            b'<?xml version="1.0" encoding="GBK"?>' + "中".encode("gbk"),
            "",
            '<?xml version="1.0" encoding="GBK"?>中',
        ),
        ("<meta charset=utf-16>ü".encode(), "", "<meta charset=utf-16>ü"),
        (b"\x81\x8d", "text/html; charset=windows-1252", "\x81\x8d"),
        (b"a\x80", "text/html; charset=x-user-defined", "a\uf780"),
        (b"<meta charset=x-user-defined>\x80", "", "<meta charset=x-user-defined>€"),
        (b"\xff\xfe\x00", "", "\ufffd"),
        (b"\xff\xfe\x00\xd8a\x00\x00\xdc", "", "\ufffda\ufffd"),
    ],
)
def test_mark_then_header_then_document(body: bytes, content_type: str, text: str) -> None:
    assert utf8(body, content_type).decode() == text


@given(st.binary(max_size=200), st.sampled_from(sorted(set(CODECS.values()) - {"utf-8", "x-user-defined"})))
def test_the_compiled_ways_agree_with_the_codecs(body: bytes, codec: str) -> None:
    label = next(label for label, each in CODECS.items() if each == codec)
    if body.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return
    if codec.startswith("utf-16"):
        body = b"\0" * 2 + body
    ours, theirs = utf8(body, f"a/b; charset={label}").decode(), body.decode(codec, "replace")
    if codec in MULTIBYTE or codec.startswith("utf-16"):
        assert ours.replace("\ufffd", "") == theirs.replace("\ufffd", "")
        return
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert one == other or (other == "\ufffd" and "\x80" <= one < "\xa0")


@pytest.mark.parametrize(
    "label", sorted({next(k for k, v in CODECS.items() if v == codec) for codec in CODECS.values()})
)
@pytest.mark.parametrize("unit", [b"\x81", b"\xff", b"\xd8\x00", b"\x1b$B!", b"\x80\x30", b"a\xff"])
def test_no_byte_is_dear_in_any_encoding(label: str, unit: bytes) -> None:
    """The error handler of a codec costs a microsecond a byte; a whole body of bad bytes would take half a minute."""
    body = b"\0\0" + unit * (1_000_000 // len(unit))
    utf8(body[:100], f"a/b; charset={label}")  # compile
    began = time.process_time()
    utf8(body, f"a/b; charset={label}")
    assert time.process_time() - began < 0.25
