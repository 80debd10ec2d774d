"""What the pass over a page knows of HTML's tags: which part two texts, hold none, or end without being told."""

import numpy as np
from numpy.typing import NDArray

_WORD = (1 << 64) - 1
SLOTS_BITS = 9
GOLDEN = np.uint64(0x9E3779B97F4A7C15)

# Bits of a kind.
BREAK = 1  # a text ends where it begins and where it ends
VOID = 2  # it holds nothing and is never closed
RAW = 4  # after it nothing is a tag until it is closed
UNSEEN = 8  # what stands in it is not shown
REFERENCES = 16  # a raw text in which `&amp;` is an ampersand all the same
GROUP = 32  # times the number of the group of those that end each other

_TAGS = {
    BREAK: """address article aside blockquote body br button caption center dd details dialog dir div dl dt fieldset
      figcaption figure footer form frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html legend li main menu nav ol
      optgroup option p plaintext pre search section select summary table tbody td template textarea tfoot th thead
      title tr ul xmp""",
    VOID: "area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr",
    RAW: "script style textarea title xmp iframe noembed noframes",
    UNSEEN: "script style iframe noembed noframes template",
    REFERENCES: "textarea title",
}
# One of a group ends the one before it, whose end may be left out.
GROUPS = (("p",), ("li",), ("dt", "dd"), ("td", "th"), ("tr",), ("option", "optgroup"), ("tbody", "thead", "tfoot"))
P, CELL, ROW, SECTION = 1, 4, 5, 7  # numbers of groups


def name_code(name: str) -> int:
    """A number for a tag's or an attribute's name, as the compiled pass computes it from lower-case letters."""
    code = 0
    for byte in name.encode():
        code = (((code << 5) | (code >> 59)) + byte * int(GOLDEN)) & _WORD
    return code


def _kinds() -> dict[str, int]:
    kinds: dict[str, int] = {}
    for bit, names in _TAGS.items():
        for name in names.split():
            kinds[name] = kinds.get(name, 0) | bit
    for number, group in enumerate(GROUPS, start=1):
        for name in group:
            kinds[name] = kinds.get(name, 0) + number * GROUP
    return kinds


KINDS = _kinds()


def _slots() -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """The kinds by the codes of their names: a table with open addressing."""
    size = 1 << SLOTS_BITS
    codes, kinds = np.zeros(size, np.uint64), np.zeros(size, np.int64)
    for name, kind in KINDS.items():
        code = name_code(name)
        slot = ((code * int(GOLDEN)) & _WORD) >> (64 - SLOTS_BITS)
        while codes[slot]:
            slot = (slot + 1) % size
        codes[slot], kinds[slot] = code, kind
    return codes, kinds


SLOT_CODES, SLOT_KINDS = _slots()
