"""How much of what was fetched is in memory and not yet durable, and whether more may be fetched."""

FADING = 0.98  # of the largest recent body, with each body that comes: it is forgotten after about a hundred


class Pressure:
    """Counts bytes between fetching and storing.

    Nothing new may begin where that could lead beyond `bound`, assuming that every fetch under way brings as much as
    the largest recent body, or what has arrived of all of them if that is more. What such a fetch does bring is bounded
    by the fetcher alone. So bodies that are suddenly larger, and all arrive between two orders, may exceed the bound
    once, by as many as are under way. One fetch may always go.
    """

    def __init__(self, bound: int) -> None:
        self.bound = bound
        self.held = 0
        self._largest = 0.0

    def room(self, under_way: int, arriving: int = 0) -> bool:
        """Whether one more fetch may begin beside those that are under way, of which so many bytes have arrived."""
        if not self.held and not under_way:
            return True
        return self.held + max(under_way * self._largest, arriving) + self._largest <= self.bound

    @property
    def high(self) -> bool:
        """Whether it is time to write, however few there are."""
        return self.held > self.bound / 4

    def hold(self, size: int) -> None:
        """A body has come."""
        self.held += size
        self._largest = max(float(size), self._largest * FADING)

    def release(self, size: int) -> None:
        """A body is durable, or nobody needs it any more."""
        self.held -= size
