"""`afresh lab search`: a small collection that changes, replayed; and what is refused."""

import json
import random
from pathlib import Path

import pytest

from afresh.errors import InputError
from afresh.lab.searched import TITLES, Run, contest, documents_in, world_of
from afresh.lab.searched_picture import draw

DAYS = [f"2020-{month:02}-01" for month in range(1, 13)]


@pytest.fixture
def history(tmp_path: Path) -> Path:
    rng, lines = random.Random(2), []
    for nth in range(30):
        texts = {day: " ".join(f"word{rng.randint(0, 60)}" for _ in range(30)) for day in DAYS if rng.random() < 0.4}
        versions = [[day, f"# About word{nth} thing\n{text}"] for day, text in texts.items()]
        if versions:
            last = DAYS[-1] if nth % 5 else versions[-1][0]
            lines.append(json.dumps({"path": f"{nth}.md", "last": last, "versions": versions}))
    path = tmp_path / "history.jsonl"
    path.write_text("\n".join(lines))
    return path


def test_more_crawls_make_better_answers_and_seeds_repeat(history: Path) -> None:
    documents = documents_in(history)
    rows = contest(documents, every=[86400.0 * 60, 86400.0 * 2], queries=12, policies=["uniform", "quality"], seed=1)
    found = {(row.policy, row.every): row for row in rows}
    for policy in ("uniform", "quality"):
        rare, often = (found[policy, 86400.0 * days] for days in (60, 2))
        assert rare.rbo < often.rbo
        assert often.rbo > 0.95
        assert rare.fresh < often.fresh
    assert found["uniform", 86400.0 * 2].below_uniform == 1.0
    again = Run(world_of(documents, queries=12, seed=1), "quality", 86400.0 * 60, 0.25, 1).carry_out()
    assert again.rbo == found["quality", 86400.0 * 60].rbo
    for name, some in (("lines.svg", rows), ("bars.svg", rows[:1])):
        draw(some, TITLES, history.with_name(name))
        assert history.with_name(name).read_text().count("<path") > 20


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nonsense", "line 1 makes no sense"),
        ('{"path": "a", "versions": []}', "line 1 makes no sense"),
        ("", "history"),
    ],
)
def test_a_file_that_is_no_history_gets_a_sentence(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "bad.jsonl").write_text(text)
    with pytest.raises(InputError, match=says):
        documents_in(tmp_path / "bad.jsonl")
    with pytest.raises(InputError, match="no file"):
        documents_in(tmp_path / "missing.jsonl")
