"""Strict mode by cases: some of our own, and the public ones that need no pause, where they are at hand."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

from afresh.cli.serving import parts_for
from afresh.config import parse
from cache_cases import Case, CaseOrigin, passed, play_all

# What is not done: cookies are stripped from what is kept, other transfer codings than chunked are refused, parts and
# answers to POST are not kept, languages are not negotiated.
NOT_DONE = {
    *("headers-store-Set-Cookie", "headers-store-Set-Cookie2", "headers-store-Transfer-Encoding"),
    *("method-POST", "vary-normalise-lang-select", "conditional-lm-fresh-no-lm"),
    *(f"partial-store-partial-reuse-partial{each}" for each in ("", "-byterange", "-absent", "-suffix")),
    "partial-store-partial-complete",
}
FRESH = ["Cache-Control", "max-age=3600"]


def two(*headers: list[object], again: str, **second: object) -> list[Case]:
    """Two requests for a page that is answered with these fields; what the second one is to be."""
    first = {"response_headers": [list(each) for each in headers], "setup": True}
    return [first, {"expected_type": again, **second}]


OURS: list[Case] = [
    {"id": "fresh", "requests": two(FRESH, again="cached")},
    {"id": "nothing said", "requests": two(again="not_cached")},
    {"id": "no-store", "requests": two(["Cache-Control", "no-store, max-age=3600"], again="not_cached")},
    {"id": "private", "requests": two(["Cache-Control", "private, max-age=3600"], again="not_cached")},
    {"id": "quoted", "requests": two(["Cache-Control", 'max-age="3600"'], again="cached")},
    {"id": "old on arrival", "requests": two(FRESH, ["Age", "7200"], again="not_cached")},
    {
        "id": "targeted",
        "requests": two(["CDN-Cache-Control", "max-age=60"], ["Cache-Control", "no-store"], again="cached"),
    },
    {"id": "targeted off", "requests": two(["CDN-Cache-Control", "no-store"], FRESH, again="not_cached")},
    {"id": "expired", "requests": two(["Expires", -100], ["Date", 0], again="not_cached")},
    {"id": "until", "requests": two(["Expires", 100], ["Date", 0], again="cached")},
    {
        "id": "asked about",
        "requests": two(["Cache-Control", "max-age=0"], ["ETag", '"a"'], again="etag_validated", expected_status=200),
    },
    {"id": "unkeyed", "requests": two(FRESH, ["Vary", "*"], again="not_cached")},
    {"id": "query", "requests": two(FRESH, again="not_cached", query_arg="other")},
]


async def _played(cases: list[Case]) -> tuple[set[str], dict[str, str]]:
    origin = CaseOrigin()
    port = await origin.start()
    parts = parts_for(parse(f'[[serve]]\nprefix = "/"\norigin = "http://127.0.0.1:{port}"\nstrict = true\n'), None, [])
    host, listening = await parts.start("127.0.0.1", 0)
    found = await play_all(cases, host, listening)
    await parts.stop(0.2)
    await origin.stop()
    return passed(cases, found), found


def test_our_own_cases() -> None:
    good, found = asyncio.run(_played(OURS))
    assert good == {case["id"] for case in OURS}, found


def test_a_runner_that_expects_the_contrary_finds_it() -> None:
    wrong = [{"id": "wrong", "requests": two(FRESH, again="not_cached")}]
    wrong.append({"id": "also", "requests": two(again="cached")})
    assert asyncio.run(_played(wrong))[0] == set()


def test_public_cases_without_pauses(suite: Callable[[str], Path]) -> None:
    suites = json.loads((suite("cache-tests") / "tests.json").read_text())
    cases = [case for each in suites for case in each["tests"] if not case.get("browser_only")]
    quick = [case for case in cases if not any(step.get("pause_after") for step in case["requests"])]
    needed = [case["id"] for case in quick if case.get("kind", "required") != "check" and case["id"] not in NOT_DONE]
    good, found = asyncio.run(_played(quick))
    if missed := [name for name in needed if name not in good]:
        # A busy machine may be late; what fails again alone is wrong.
        good |= asyncio.run(_played([case for case in quick if case["id"] in missed]))[0]
    assert set(needed) <= good, {name: found[name] for name in needed if name not in good}
    assert len(needed) > 60
