import gzip
import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from afresh.errors import InputError
from afresh.lab.files import (
    CREATE,
    DELETE,
    MODIFY,
    MOVE,
    Recorded,
    choose,
    moment_of,
    read_addresses,
    read_history,
    read_names,
    read_requests,
)


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_a_csv_of_page_and_time_is_a_history(tmp_path: Path) -> None:
    file = write(tmp_path / "h.csv", "page,timestamp\n/a,10\n/b,1970-01-01T00:00:20\n# a remark\n/a,30.5\n")
    found = read_history(file)
    assert found.names == ["/a", "/b"]
    assert found.page.tolist() == [0, 1, 0]
    assert found.time.tolist() == [10.0, 20.0, 30.5]
    packed = tmp_path / "h.csv.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    assert read_history(packed).time.tolist() == found.time.tolist()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a,1\nb,soon\n", r"line 2: 'soon' is not a time; expected Unix seconds or ISO 8601"),
        ("a,1\nb\n", r"line 2: 1 field, expected 2: page,timestamp"),
        ("a,1,2\n", r"line 1: 3 fields"),
        ("page,timestamp\n", "holds no change"),
        ("a,1\nb,nan\n", "line 2"),
        ("", "holds no change"),
    ],
)
def test_a_bad_line_of_a_history_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        read_history(write(tmp_path / "h.csv", text))


def test_an_npz_needs_its_arrays(tmp_path: Path) -> None:
    file = tmp_path / "h.npz"
    np.savez(file, ts=np.array([1, 2]), page=np.array([7, 5]), kind=np.array([1, 1]))
    assert read_history(file).names == ["5", "7"]
    np.savez(file, ts=np.array([1, 2]))
    with pytest.raises(InputError, match="no array 'page'"):
        read_history(file)
    np.savez(file, ts=np.array([1, 2]), page=np.array([1]))
    with pytest.raises(InputError, match=r"page has shape \(1,\)"):
        read_history(file)
    np.savez(file, ts=np.array([1.0, np.nan]), page=np.array([1, 2]))
    with pytest.raises(InputError, match=r"ts\[1\] is not a number"):
        read_history(file)
    file.write_bytes(b"not a zip")
    with pytest.raises(InputError, match=r"not an \.npz"):
        read_history(file)
    with pytest.raises(InputError, match="There is no file"):
        read_history(tmp_path / "nowhere.csv")


def test_what_is_no_change_is_skipped_with_a_message(tmp_path: Path) -> None:
    file = tmp_path / "h.npz"
    kind = np.array([CREATE, MODIFY, 9, MODIFY])
    np.savez(file, ts=np.array([1, 2, 3, 4]), page=np.zeros(4, int), kind=kind, technical=np.array([1, 0, 0, 1]))
    found = read_history(file)
    assert found.time.tolist() == [1.0, 2.0]
    assert found.kind.tolist() == [CREATE, MODIFY]
    assert found.notes == (
        "h.npz: 1 events of unknown kind (9) are skipped.",
        "h.npz: 1 events with technical 1 are no changes.",
    )
    np.savez(file, ts=np.array([1, 2]), page=np.zeros(2, int), text_changed=np.array([0, 1]))
    assert read_history(file).time.tolist() == [2.0]
    np.savez(file, ts=np.array([1, 2]), page=np.zeros(2, int), text_changed=np.array([0]))
    with pytest.raises(InputError, match="text_changed has shape"):
        read_history(file)


def test_names_beside_a_history_are_its_addresses(tmp_path: Path) -> None:
    file = tmp_path / "h.npz"
    assert read_names(file) == {}
    (tmp_path / "h.items.txt.gz").write_bytes(gzip.compress(b"x/a\nx/b\n"))
    assert read_names(file) == {"0": "x/a", "1": "x/b"}
    (tmp_path / "i.pages.txt.gz").write_bytes(gzip.compress(b"7\tx/a\n9\tx/b\n"))
    assert read_names(tmp_path / "i.npz") == {"7": "x/a", "9": "x/b"}


def test_requests_come_with_or_without_header_and_snapshots(tmp_path: Path) -> None:
    plain = write(tmp_path / "r.csv", "/a,2\n/b,0.5\n/a,1\n")
    assert read_requests(plain, 0.0) == {"/a": 3.0, "/b": 0.5}
    shots = write(tmp_path / "s.csv", "snapshot_ts,page,popularity\n10,/a,1\n20,/a,5\n30,/a,9\n")
    assert read_requests(shots, 25.0) == {"/a": 5.0}
    assert read_requests(shots, 5.0) == {"/a": 1.0}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("/a,many\n", r"line 1: 'many' is not a weight; expected 0 to"),
        ("page,weight\n/a,1\n/b,-1\n", "line 3"),
        ("/a\n", "line 1: 1 field, expected 2"),
        ("snapshot_ts,page,weight\nsoon,/a,1\n", "line 2: 'soon' is not a time"),
        ("page,weight\n", "holds no weights"),
    ],
)
def test_a_bad_line_of_requests_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        read_requests(write(tmp_path / "r.csv", text), 0.0)


def test_only_pages_that_exist_in_the_scored_time_are_replayed() -> None:
    rows = [  # page, time, kind
        (0, 0, CREATE), (0, 50, MODIFY), (0, 60, MOVE), (0, 70, MODIFY),  # lives
        (1, 0, CREATE), (1, 80, DELETE),  # dies later
        (2, 60, CREATE), (2, 90, MODIFY),  # born on the way
        (3, 0, CREATE), (3, 10, DELETE), (3, 20, CREATE), (3, 100, MODIFY),  # dies and lives again
        (4, 30, MODIFY),  # was always there
        (5, 0, CREATE), (5, 40, DELETE),  # is dead by then
    ]  # fmt: skip
    page, time, kind = (np.array(column) for column in zip(*rows, strict=True))
    recorded = Recorded(list("abcdef"), page.astype(np.int64), time.astype(float), kind.astype(np.int64))
    chosen = choose(recorded, score_from=50.0, weights=None)
    assert chosen.history.pages == 5
    assert (chosen.left_out, chosen.gone, chosen.born) == (1, 1, 1)
    assert chosen.history.times.tolist() == [50.0, 70.0, 90.0, 100.0, 30.0]
    assert chosen.history.ends is not None
    assert chosen.history.ends.tolist() == [np.inf, 80.0, np.inf, np.inf, np.inf]
    assert chosen.history.births is not None
    assert chosen.history.births.tolist() == [0.0, 0.0, 60.0, 0.0, -np.inf]
    assert chosen.history.names == ("a", "b", "c", "d", "e")
    assert choose(recorded, score_from=50.0, weights=None, apart=True).history.names == ()
    every = choose(recorded, score_from=50.0, weights=None, from_start=True)
    assert every.history.names == ("a", "b", "c", "d", "e", "f")
    assert (every.left_out, every.gone, every.born) == (0, 0, 0)
    assert every.history.lived(50.0, 100.0).tolist() == [50.0] * 6
    named = choose(recorded, score_from=50.0, weights=None, addresses={"a": "x/1", "d": "x/2"})
    assert named.history.names == ("x/1", "", "", "x/2", "")
    wanted = choose(recorded, score_from=50.0, weights={"a": 2.0, "e": 3.0, "z": 1.0})
    assert wanted.history.weight.tolist() == [2.0, 3.0]
    with pytest.raises(InputError, match="No page is left"):
        choose(recorded, score_from=50.0, weights={"z": 1.0})


def test_times_are_utc_unless_they_say_otherwise() -> None:
    assert moment_of("1970-01-01") == 0.0
    assert moment_of("1970-01-01T01:00:00+01:00") == 0.0
    assert np.isnan(moment_of("yesterday"))


def test_addresses_are_read_from_a_text_with_tabs(tmp_path: Path) -> None:
    file = write(tmp_path / "pages.txt", "0\tdocs/a.html\n1\tdocs/b c.html\n")
    assert read_addresses(file) == {"0": "docs/a.html", "1": "docs/b c.html"}
    packed = tmp_path / "pages.txt.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    assert read_addresses(packed) == read_addresses(file)
    with pytest.raises(InputError, match="line 2: there is no tab"):
        read_addresses(write(tmp_path / "bad.txt", "0\ta\n1 b\n"))
    with pytest.raises(InputError, match="There is no file"):
        read_addresses(tmp_path / "none.txt")


def test_an_npz_that_lies_about_its_size_is_refused_in_a_sentence(tmp_path: Path) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**13,)})
    for name, shape in (("short", header.getvalue()), ("bomb", b"")):
        path = tmp_path / f"{name}.npz"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
            packed.writestr("ts.npy", shape)
            packed.writestr("page.npy", shape)
        if name == "bomb":
            data = path.read_bytes()  # the directory says 4 GiB and more
            at = data.rindex(b"PK\x01\x02")
            path.write_bytes(data[: at + 24] + b"\xfe\xff\xff\xff" + data[at + 28 :])
            at = path.read_bytes().index(b"PK\x01\x02")
            data = path.read_bytes()
            path.write_bytes(data[: at + 24] + b"\xfe\xff\xff\xff" + data[at + 28 :])
        with pytest.raises(InputError, match=r"npz|unpacks to"):
            read_history(path)
