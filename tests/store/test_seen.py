import os
import random
import signal
import struct
import subprocess
import sys
import time
import tracemalloc
import zlib
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import afresh
from afresh.errors import ConfigError, StoreError, StoreLocked
from afresh.store import SeenOnDisk
from afresh.store.seen_run import Run, merged, write_run
from afresh.testing import check_seen

SOURCE = str(Path(afresh.__file__).parent.parent)
SMALL = 1 << 20  # so that runs are written and merged all the time
TOP = (1 << 64) - 1


def keys(seed: int, size: int) -> NDArray[np.uint64]:
    return np.random.default_rng(seed).integers(0, TOP, size, np.uint64)


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[Path]:
    return (tmp_path / f"seen{nth}" for nth in count())


def test_it_answers_as_a_plain_set_does(folders: Iterator[Path]) -> None:
    check_seen(lambda: SeenOnDisk(next(folders), memory=SMALL))
    check_seen(lambda: SeenOnDisk(next(folders)), rounds=10)


def test_it_goes_on_where_it_ended(tmp_path: Path) -> None:
    for part in range(12):
        with SeenOnDisk(tmp_path / "seen", memory=SMALL) as seen:
            assert len(seen) == 15_000 * part
            for before in range(part):
                assert not seen.add_many(keys(before, 15_000)).any()
            assert seen.add_many(keys(part, 15_000)).all()
    assert len(list((tmp_path / "seen").glob("run-*"))) < 6
    with SeenOnDisk(tmp_path / "seen", memory=16 * SMALL) as seen:
        assert len(seen) == 180_000


def test_memory_stays_within_the_setting(tmp_path: Path) -> None:
    with SeenOnDisk(tmp_path / "seen", memory=8 * SMALL) as seen:
        batches = [keys(nth, 20_000) for nth in range(100)]
        tracemalloc.start()
        for batch in batches:
            seen.add_many(batch)
            assert seen.nbytes <= 4 * SMALL
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(seen) == 2_000_000
        assert peak < 8 * SMALL
        for batch in batches[::9]:
            assert not seen.add_many(batch).any()


WRITER = """
import sys
import numpy as np
from afresh.store import SeenOnDisk
seen = SeenOnDisk(sys.argv[1], memory=1 << 20)
print("ready", flush=True)
for nth in range(int(sys.argv[2]), 1 << 30):
    batch = np.random.default_rng(nth).integers(0, 2**64 - 1, 3_000, np.uint64)
    seen.add_many(batch)
    print(nth, flush=True)
"""


def test_kill_9_at_any_moment_loses_nothing_acknowledged(tmp_path: Path) -> None:
    rng, path, done = random.Random(9), tmp_path / "seen", 0
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    for nth in range(12):
        command = [sys.executable, "-c", WRITER, str(path), str(done)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        assert process.stdout
        assert process.stdout.readline() == "ready\n", "the restart did not come up by itself"
        time.sleep(rng.uniform(0.0, 0.2) if nth else 0.4)
        process.send_signal(signal.SIGKILL)
        said = process.stdout.read().split()
        process.stdout.close()
        process.wait()
        acknowledged = int(said[-1]) + 1 if said else done
        with SeenOnDisk(path, memory=SMALL) as seen:
            for batch in range(acknowledged):
                assert not seen.add_many(keys(batch, 3_000)).any(), f"batch {batch} was acknowledged and is lost"
            # At most the one batch that was under way has come in besides.
            assert len(seen) in (3_000 * acknowledged, 3_000 * (acknowledged + 1))
            if len(seen) > 3_000 * acknowledged:
                assert not seen.add_many(keys(acknowledged, 3_000)).any()
                acknowledged += 1
        done = acknowledged
    assert done > 20, "too few batches to prove anything"


@pytest.mark.parametrize("cut", [1, 3, 8, 9, 4_000])
def test_half_a_record_at_the_end_is_left_out(tmp_path: Path, cut: int) -> None:
    with SeenOnDisk(tmp_path / "seen") as seen:
        seen.add_many(keys(1, 1_000))
        seen.add_many(keys(2, 1_000))
    journal = tmp_path / "seen" / "journal-1"
    os.truncate(journal, journal.stat().st_size - cut)
    with SeenOnDisk(tmp_path / "seen") as seen:
        assert not seen.add_many(keys(1, 1_000)).any()
        assert seen.add_many(keys(2, 1_000)).all()
    with SeenOnDisk(tmp_path / "seen") as seen:
        assert len(seen) == 2_000


def flip(path: Path, place: int) -> None:
    raw = bytearray(path.read_bytes())
    raw[place] ^= 1
    path.write_bytes(raw)


def test_damage_is_said_and_never_taken_for_an_empty_memory(tmp_path: Path) -> None:
    folder = tmp_path / "seen"
    with SeenOnDisk(folder, memory=SMALL) as seen:
        seen.add_many(keys(1, 20_000))
        seen.add_many(keys(2, 1_000))
        seen.add_many(keys(3, 1_000))
    run, journal = next(folder.glob("run-*")), next(folder.glob("journal-*"))
    # The first record of the journal may say that it is longer than the file; and a fingerprint may be another one.
    for path, place in ((journal, 100), (journal, 2), (run, 3), (run, 13), (run, 1_000), (run, -2), (run, -50)):
        flip(path, place)
        with pytest.raises(StoreError, match="damaged") as caught:
            SeenOnDisk(folder, memory=SMALL)
        assert caught.value.hint
        flip(path, place)
    os.truncate(run, run.stat().st_size - 8)
    with pytest.raises(StoreError, match="damaged"):
        SeenOnDisk(folder, memory=SMALL)


def test_a_run_of_the_version_before_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "seen"
    with SeenOnDisk(folder, memory=SMALL) as seen:
        seen.add_many(keys(1, 20_000))
    run = next(folder.glob("run-*"))
    raw = run.read_bytes()
    header = raw[:12] + struct.pack("<I", 1) + raw[16:32]
    size, _ = struct.unpack("<QQ", raw[16:32])
    index = raw[32 + 8 * size : -8]
    run.write_bytes(header + raw[32:-8] + struct.pack("<I", zlib.crc32(header + index)))
    with SeenOnDisk(folder, memory=SMALL) as seen:
        assert not seen.add_many(keys(1, 20_000)).any()


def test_a_merge_or_a_spill_cut_short_is_put_right(tmp_path: Path) -> None:
    folder = tmp_path / "seen"
    with SeenOnDisk(folder, memory=SMALL) as seen:
        seen.add_many(keys(1, 50_000))
        total = len(seen)
    inner = next(folder.glob("run-*"))
    last = inner.stem.split("-")[2]
    # The merged run has its name, an old one and its journal are still there, and another was being written.
    (folder / f"run-{last}-{last}.seen").write_bytes(inner.read_bytes()) if inner.stem != f"run-{last}-{last}" else None
    (folder / f"journal-{last}").write_bytes(b"\0" * 5_000)
    (folder / "run-9-9.new").write_bytes(b"half")
    with SeenOnDisk(folder, memory=SMALL) as seen:
        assert len(seen) == total
        assert not seen.add_many(keys(1, 50_000)).any()
    assert not list(folder.glob("*.new"))


def test_one_process_at_a_time(tmp_path: Path) -> None:
    with SeenOnDisk(tmp_path / "seen"), pytest.raises(StoreLocked):
        SeenOnDisk(tmp_path / "seen")
    SeenOnDisk(tmp_path / "seen").close()


def test_bad_arguments_and_use_after_closing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="too little memory"):
        SeenOnDisk(tmp_path / "seen", memory=1_000)
    with pytest.raises(StoreError, match="does not exist"):
        SeenOnDisk(tmp_path / "no" / "seen")
    seen = SeenOnDisk(tmp_path / "seen")
    seen.close()
    seen.close()
    with pytest.raises(StoreError, match="closed"):
        seen.add_many([1])


# The kernel refuses to let any file grow beyond the limit, as a full disk does.
CROWDED = """
import resource, signal, sys
import numpy as np
from afresh.errors import StoreError
from afresh.store import SeenOnDisk
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
seen = SeenOnDisk(sys.argv[1], memory=1 << 20)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
for nth in range(1000):
    try:
        seen.add_many(np.random.default_rng(nth).integers(0, 2**64 - 1, 3_000, np.uint64))
    except StoreError as error:
        print("refused", error)
        break
    print(nth, flush=True)
"""


@pytest.mark.parametrize("limit", [50_001, 140_000, 1_000_000])
def test_a_full_disk_is_reported_and_keeps_what_was_acknowledged(tmp_path: Path, limit: int) -> None:
    command = [sys.executable, "-c", CROWDED, str(tmp_path / "seen"), str(limit)]
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=True).stdout
    *kept, refused = said.splitlines()
    assert refused.startswith("refused The disk")
    with SeenOnDisk(tmp_path / "seen", memory=SMALL) as seen:
        for nth in map(int, kept):
            assert not seen.add_many(keys(nth, 3_000)).any()


@pytest.mark.parametrize("sizes", [(0, 5), (5, 0), (1, 1), (400_000, 3), (300_000, 300_000)])
def test_merging_two_sequences(tmp_path: Path, sizes: tuple[int, int]) -> None:
    everything = np.unique(keys(5, sum(sizes)))
    chosen = np.random.default_rng(1).permutation(sum(sizes)) < sizes[0]
    halves = [everything[chosen], everything[~chosen]]
    runs = [write_run(tmp_path / f"{nth}.seen", half.size, iter([half]), 700) for nth, half in enumerate(halves)]
    both = np.concatenate(list(merged(runs[0].chunks(), runs[1].chunks())))
    assert (both == everything).all()
    for run, half in zip(runs, halves, strict=True):
        if half.size:
            assert (run.contains(everything) == np.isin(everything, half)).all()
            asked = np.unique(keys(6, 50))
            assert not run.contains(asked).any()
        run.close()
    (tmp_path / "0.seen").write_bytes(b"")
    with pytest.raises(StoreError, match="damaged"):
        Run(tmp_path / "0.seen")
