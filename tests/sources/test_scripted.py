"""The battery, and the scripted source in it; that the battery can fail."""

import asyncio
from dataclasses import replace

import pytest

from afresh.sources import Known, Later, Scripted, Sources
from afresh.testing import SourceWorld, check_source
from afresh.types import Answer, Fetched, Spent, Validators


class Shelf:
    """One thing that may change and go."""

    def __init__(self, **spoilt: object) -> None:
        self.text: str | None = "one"
        self.spoilt = spoilt

    def answer(self, key: str, known: Known) -> Fetched | Later:
        said = Fetched(key, 1.0, 0.1, spent=Spent(seconds=0.1, calls=1))
        if self.text is None or not key.endswith("/thing"):
            return replace(said, answer=Answer.GONE)
        if known.validators.etag == self.text:
            return replace(said, answer=Answer.SAME)
        validators = Validators(etag=self.text)
        new = replace(said, answer=Answer.NEW, body=self.text.encode(), validators=validators, leads=("script:a/b",))
        return replace(new, **self.spoilt)  # type: ignore[arg-type]

    def world(self) -> SourceWorld:
        return SourceWorld(
            Scripted(self.answer),
            "script:a/thing",
            "https://a.example/",
            change=lambda: setattr(self, "text", "two"),
            remove=lambda: setattr(self, "text", None),
            missing="script:a/other",
        )


def test_the_scripted_source_keeps_the_promises() -> None:
    check_source(lambda: Shelf().world())


@pytest.mark.parametrize(
    "spoilt",
    [
        {"leads": ("file:///etc/passwd",)},
        {"body": b"always the same"},
        {"answer": Answer.SAME, "body": b""},
        {"meta": {"a": "b" * 100_000}},
        {"spent": Spent(calls=0)},
        {"url": "script:a/else"},
    ],
    ids=lambda spoilt: next(iter(spoilt)),
)
def test_a_broken_promise_is_seen(spoilt: dict[str, object]) -> None:
    with pytest.raises(AssertionError):
        check_source(lambda: Shelf(**spoilt).world())


def test_content_leads_to_its_own_kind_alone() -> None:
    sources = Sources([Scripted(lambda key, known: Later(1.0)), Scripted(lambda key, known: Later(1.0), kind="file")])
    assert sources.led("script:a/1", ["script:a/2", "file:/etc/passwd", "script:" + "a" * 5_000]) == ["script:a/2"]
    assert sources.led("nobody:knows", ["script:a/2"]) == []
    asyncio.run(sources.close())
