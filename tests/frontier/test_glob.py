import re
import time

from hypothesis import example, given
from hypothesis import strategies as st

from afresh.frontier.glob import Glob

PATTERNS = st.text("ab*$", max_size=10)
TEXTS = st.text("ab$", max_size=12)


def by_regex(pattern: str, text: str) -> bool:
    body, end = (pattern[:-1], r"\Z") if pattern.endswith("$") else (pattern, "")
    return re.match("(?s)" + ".*".join(map(re.escape, body.split("*"))) + end, text) is not None


@given(PATTERNS, TEXTS)
@example("*aa*aa", "aaa")
@example("*ab*ab$", "abab")
@example("*ab*b$", "ab")
@example("a*a$", "a")
def test_matches_what_the_same_regular_expression_matches(pattern: str, text: str) -> None:
    assert Glob(pattern).matches(text) == by_regex(pattern, text)


def test_a_wildcard_bomb_takes_linear_time() -> None:
    bomb = Glob("/" + "*a" * 5_000 + "*b$")

    def seconds(length: int) -> float:
        began = time.perf_counter()
        for _ in range(20):
            assert not bomb.matches("/" + "a" * length)
        return time.perf_counter() - began

    # Backtracking would need more than the age of the universe; a quadratic walk 64 times as long for 8 times the text.
    short = min(seconds(5_000) for _ in range(3))
    assert min(seconds(40_000) for _ in range(3)) < 30 * short
