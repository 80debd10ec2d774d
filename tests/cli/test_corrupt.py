"""Every command on a store that is damaged: an answer or one sentence, never a traceback."""

import io
import json
import random
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from afresh.cli import app
from afresh.errors import AfreshError
from afresh.estimate import Activity, Calibration, Senders
from afresh.estimate.activity_kept import to_text
from afresh.store import PageState, Sqlite
from afresh.testing.store_model import page, record
from afresh.types import Outcome

PAGE = 4096
COMMANDS = [
    ("status", "--json"),
    ("status",),
    ("show", page(0).url, "--json"),
    ("show", page(1).url),
    ("changes",),
    ("hosts", "--json"),
    ("hosts",),
    ("export", "--jsonl", "{out}"),
    ("export", "--warc", "{out}"),
    ("plan", "--budget", "5/s"),
    ("add", "http://new.example/"),
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a sound store, with everything that a run leaves in it."""
    path, rng = tmp_path_factory.mktemp("whole") / "s.db", random.Random(3)
    with Sqlite(path) as store:
        pages = [page(nth) for nth in range(40)]
        store.add(pages)
        store.write([record(PageState(each), Outcome.NEW, 1.0, rng.randbytes(300)) for each in pages])
        for time, outcome in enumerate((Outcome.UNCHANGED, Outcome.FAILED, Outcome.GONE), start=2):
            states = [store.state(each.url) for each in pages]
            store.write([record(state, outcome, float(time)) for state in states if state is not None])
        calibration = Calibration()
        for _ in range(50):
            calibration.add(rng.random(), rng.random() < 0.5)
        bounds = {"hosts": ["a"], "include": [], "exclude": [], "depth": None, "max_pages": None}
        values = {"price": "0.25", "budget": "2.0", "alive": "0", "freshness": "0.5", "crawl": json.dumps(bounds)}
        values |= {"calibration": calibration.to_text(), "senders": Senders().to_text()}
        values |= {"activity": to_text(Activity(width=100.0)), "robots https://host0.example": '{"failures": 0}'}
        store.put(values)
    return path.read_bytes()


def damages(whole: bytes) -> Iterator[bytes]:
    """Each page of the file overwritten or emptied, and bytes here and there."""
    rng = random.Random(11)
    for at in range(0, len(whole), PAGE):
        yield whole[:at] + rng.randbytes(PAGE) + whole[at + PAGE :]
        if at:
            yield whole[:at] + bytes(PAGE) + whole[at + PAGE :]
    for _ in range(40):
        data = bytearray(whole)
        for _ in range(rng.choice([1, 5, 50])):
            data[rng.randrange(100, len(data))] = rng.randrange(256)
        yield bytes(data)


def call(words: tuple[str, ...], store: Path) -> str:
    """What the command says instead of an answer, "" if it answers."""
    out = str(store.parent / "out")
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            app([*(word.format(out=out) for word in words), "--store", str(store)], standalone_mode=False)
    except AfreshError as error:
        said = error
    else:
        return ""
    assert said.message.endswith(".")
    assert "\n" not in str(said)
    assert said.hint
    return said.message


def test_every_command_answers_or_says_one_sentence(whole: bytes, tmp_path: Path) -> None:
    path, said, count = tmp_path / "s.db", 0, 0
    for nth, data in enumerate(damages(whole)):
        words = COMMANDS[nth % len(COMMANDS)], COMMANDS[(nth + 1) % len(COMMANDS)], ("status", "--json")
        for each in words:
            for file in tmp_path.iterdir():
                file.unlink()
            path.write_bytes(data)
            said += bool(call(each, path))
            count += 1
    assert 0.2 * count < said < count


@pytest.mark.parametrize("name", ["calibration", "price", "budget", "senders", "activity", "alive"])
@pytest.mark.parametrize("value", ["", "{", "null", "[]", '{"summary": 1}', "x" * 100, "\0"])
def test_named_values_that_make_no_sense_are_one_sentence(whole: bytes, tmp_path: Path, name: str, value: str) -> None:
    (tmp_path / "s.db").write_bytes(whole)
    with Sqlite(tmp_path / "s.db") as store:
        store.put({name: value})
    call(("status", "--json"), tmp_path / "s.db")
    call(("show", page(0).url), tmp_path / "s.db")
