"""A 64-bit fingerprint of what a page says, blind to what merely surrounds it."""

import re

import xxhash
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.encoding import bytes_to_str, detect_encoding

# What changes without meaning, beyond what the extractor leaves out by itself.
_SURROUNDINGS = [
    *("script", "style", "noscript", "template", "nav", "footer", "aside", "iframe", "time"),
    *(".ad", ".ads", ".advert", ".advertisement", "[class*='sponsor']", "[id*='advert']", "[aria-hidden='true']"),
]
_SPACE = re.compile(r"\s+")


def main_text(body: bytes) -> str:
    """The main text of an HTML page: navigation, advertisements and footers left out, white space folded."""
    html = bytes_to_str(body, detect_encoding(body))
    text = extract_plain_text(
        html, main_content=True, alt_texts=False, preserve_formatting=False, skip_elements=_SURROUNDINGS
    )
    return _SPACE.sub(" ", text).strip()


def fingerprint(body: bytes, content_type: str) -> int:
    """64 bits of the content that matters; HTML by its main text, everything else by its bytes; never 0.

    >>> fingerprint(b"a,b", "text/csv") == fingerprint(b"a,b", "text/csv") != fingerprint(b"a,c", "text/csv")
    True
    """
    content = body
    if "html" in content_type.lower():
        # A page whose main text cannot be told apart (a bare redirect page, a frame set) is compared as it is.
        content = main_text(body).encode() or body
    return xxhash.xxh3_64_intdigest(content) or 1
