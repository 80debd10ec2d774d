"""Where zstd frames end (RFC 8878), because the library does not tell whether the last one has."""

from collections.abc import Callable

SKIPPABLE = 0x184D2A50  # and the fifteen numbers after it
MAX_FRAMES = 1000  # each costs time even when it is empty or skipped,
MAX_BLOCKS = 100_000  # and so does a block; one of full size holds 128 KiB
_DICTIONARY = (0, 1, 2, 4)  # bytes of a dictionary's number, by two bits of the descriptor
_CONTENT = (0, 2, 4, 8)  # and of the content's size; one more if the frame is a single segment and says none


class ZstdFrames:
    """Follows frames and blocks by their headers; what is in the blocks is for the library.

    >>> frame = bytes.fromhex("28b52ffd200739000074686520656e64")
    >>> frames = ZstdFrames()
    >>> [(frames.feed(frame[:cut]), frames.whole) for cut in (5, 0)], ZstdFrames().whole
    ([(None, False), (None, False)], False)
    >>> frames.feed(frame[5:]), frames.whole
    (None, True)
    """

    def __init__(self) -> None:
        self._step: Callable[[int], None] = self._magic  # takes the next bytes that matter,
        self._wanted = 4  # so many of them,
        self._held = b""  # these are there already,
        self._skip = 0  # and so many others come before them
        self._ended = 0  # frames
        self._frames = self._blocks = 0  # that began
        self._checksum = 0  # bytes after the last block

    def feed(self, data: bytes) -> None:
        """Take in the next bytes."""
        place = 0
        while place < len(data) and not self.too_many:
            if self._skip:
                skipped = min(self._skip, len(data) - place)
                self._skip -= skipped
                place += skipped
                continue
            taken = data[place : place + self._wanted - len(self._held)]
            place += len(taken)
            self._held += taken
            if len(self._held) == self._wanted:
                held, self._held = self._held, b""
                self._step(int.from_bytes(held, "little"))

    @property
    def whole(self) -> bool:
        """Whether the last byte was the last one of a frame."""
        return self._ended > 0 and self._step == self._magic and not self._held and not self._skip

    @property
    def too_many(self) -> bool:
        """Whether there are more frames or blocks than anybody needs: they are not followed any further."""
        return self._frames > MAX_FRAMES or self._blocks > MAX_BLOCKS

    def _magic(self, number: int) -> None:
        self._frames += 1
        # What is neither is no frame; the library will say so.
        skippable = number & ~0xF == SKIPPABLE
        self._step, self._wanted = (self._size, 4) if skippable else (self._descriptor, 1)

    def _size(self, size: int) -> None:
        self._skip = size  # and this was no frame of content
        self._step, self._wanted = self._magic, 4

    def _descriptor(self, bits: int) -> None:
        single = bits >> 5 & 1
        self._checksum = 4 * (bits >> 2 & 1)
        self._skip = (not single) + _DICTIONARY[bits & 3] + (_CONTENT[bits >> 6] or single)
        self._step, self._wanted = self._block, 3

    def _block(self, header: int) -> None:
        self._blocks += 1
        last, repeated, size = header & 1, header >> 1 & 3 == 1, header >> 3
        self._skip = 1 if repeated else size
        if last:
            self._skip += self._checksum
            self._ended += 1
            self._step, self._wanted = self._magic, 4
