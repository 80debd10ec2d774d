import gzip
import json
import lzma
import sys
from pathlib import Path

import pytest

from afresh.cli import main
from afresh.kinds.bayes import KINDS


@pytest.fixture
def afresh(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    def run(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["afresh", *map(str, words)])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        out, err = capsys.readouterr()
        return code, out, err

    return run


def labelled(folder: Path, pages: int = 60) -> Path:
    rows = []
    for n in range(pages):
        kind = KINDS[n % 4]
        html = f"<title>{kind} {'abcdefgh'[n % 8]}</title><p>this one is a {kind}, as {kind}s are"
        rows.append(json.dumps({"url": f"https://h{n}.example/{kind}/{n}", "type": kind, "html": html}))
    file = folder / "pages.jsonl.xz"
    file.write_bytes(lzma.compress("\n".join(rows).encode()))
    return file


def test_train_then_test(afresh, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    file, weights, out = labelled(tmp_path), tmp_path / "w.npz", tmp_path / "out.json"
    code, shown, _ = afresh("lab", "kinds", "train", file, "--folds", 3, "--out", weights, "--json", out)
    assert code == 0
    assert "macro f1" in shown
    assert json.loads(out.read_text())["accuracy"] > 0.9
    assert afresh("lab", "kinds", "test", file, "--weights", weights, "--json", out)[0] == 0
    found = json.loads(out.read_text())
    assert found["accuracy"] == 1.0
    assert (found["macro_f1"], found["pages"]) == (1.0, 60)
    assert found["ms_per_page"] > 0
    again = tmp_path / "again.npz"
    assert afresh("lab", "kinds", "train", file, "--folds", 0, "--out", again)[0] == 0
    assert again.read_bytes() == weights.read_bytes()


def test_the_shipped_model_is_scored_by_default(afresh, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = afresh("lab", "kinds", "test", labelled(tmp_path, 8), "--json", "-")
    assert code == 0
    assert {"accuracy", "macro_f1", "pages", "ms_per_page"} <= set(json.loads(out))


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("[1]", "is not a JSON object"),
        ("{", "is not a JSON object"),
        ("[" * 100_000, "is not a JSON object"),
    ],
)
def test_a_bad_line_is_named(afresh, tmp_path: Path, line: str, sentence: str) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "pages.jsonl.gz"
    file.write_bytes(gzip.compress(b"\n" + line.encode()))
    code, _, said = afresh("lab", "kinds", "test", file)
    assert code == 2
    assert sentence in said
    assert "Line 2" in said


def test_pages_of_no_known_type_are_left_out_and_counted_and_a_missing_field_is_empty(
    afresh,  # type: ignore[no-untyped-def]
    tmp_path: Path,
) -> None:
    file = tmp_path / "odd.jsonl"
    rows = [
        {"url": "http://e.example/", "type": "poem", "html": "<p>x"},
        {"url": "http://e.example/", "type": ["article"], "html": "<p>x"},
        {"html": "<p>x"},
        {"url": 7, "type": "article", "html": None},
        {"type": "forum"},
        {"url": "::://", "type": "service", "html": "\ud800 <<p <!-- <script>"},
    ]
    file.write_text("\n".join(json.dumps(row) for row in rows))
    code, out, _ = afresh("lab", "kinds", "test", file, "--json", "-")
    found = json.loads(out)
    assert (code, found["pages"], found["left_out"]) == (0, 3, 3)
    code, _, said = afresh("lab", "kinds", "train", file)
    assert (code, "pages of only" in said) == (2, True)


def test_bad_files_and_options_are_refused(afresh, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    file = labelled(tmp_path, 8)
    broken = tmp_path / "broken.xz"
    broken.write_bytes(b"no xz")
    empty = tmp_path / "empty.jsonl"
    empty.write_text("\n")
    for words, sentence in (
        (("test", tmp_path / "none"), "There is no file"),
        (("test", broken), "cannot be read"),
        (("test", empty), "holds no page of a known type"),
        (("test", file, "--weights", broken), "cannot be read"),
        (("test", file, "--weights", tmp_path / "none"), "There is no file"),
        (("train", file, "--folds", 1), "One part"),
        (("train", file), "pages of only 8 domains"),
        (("train", file, "--out", tmp_path), "cannot be written"),
    ):
        code, _, said = afresh("lab", "kinds", *words)
        assert (code, sentence in said) == (2, True), (words, said)
