"""A tree of small files, kept and indexed by the commands that people use: how long, how large, how soon found.

    python benchmarks/bench_search_files.py [files] [looks a second] [engine]

Nobody listens to notices (`notices = false`), as on a disk that others write to: edits are found by looking alone.
"""

import json
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path

import apsw

from afresh.index import Search

FILES = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
LOOKS = float(sys.argv[2]) if len(sys.argv) > 2 else 2_000.0
ENGINE = sys.argv[3] if len(sys.argv) > 3 else "fts5"
EDITS, QUERIES, FOLDER_OF, PATIENCE = 20, 200, 1_000, 600.0
RNG = random.Random(1)
WORDS = [f"w{nth:x}" for nth in range(30_000)]
WEIGHTS = list(accumulate(1.0 / (nth + 3) for nth in range(len(WORDS))))
AFRESH = [sys.executable, "-m", "afresh"]


def text() -> str:
    """What is in a file."""
    some = RNG.choices(WORDS, cum_weights=WEIGHTS, k=RNG.randint(20, 100))
    return f"# {' '.join(some[:4])}\n{' '.join(some[4:])}\n"


def wait(what: str, done: Callable[[], bool], patience: float = PATIENCE) -> float:
    """Seconds until something is so."""
    began = time.monotonic()
    while not done():
        if time.monotonic() - began > patience:
            raise SystemExit(f"{what}: not within {patience:.0f} s")
        time.sleep(0.25)
    return time.monotonic() - began


def copies(store: Path) -> int:
    """How many files have a copy in the index."""
    if not store.exists():
        return 0
    connection = apsw.Connection(str(store), flags=apsw.SQLITE_OPEN_READONLY)
    connection.set_busy_timeout(10_000)
    try:
        return int(next(connection.execute("SELECT value FROM search_state WHERE name = 'docs'"))[0])
    except apsw.SQLError:
        return 0
    finally:
        connection.close()


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as name:
        home, tree = Path(name), Path(name) / "tree"
        paths, size = [], 0
        for nth in range(FILES):
            path = tree / f"{nth // FOLDER_OF:03d}" / f"{nth:06d}.md"
            if nth % FOLDER_OF == 0:
                path.parent.mkdir(parents=True)
            size += path.write_text(text())
            paths.append(path)
        (home / "afresh.toml").write_text(
            f'[files]\nbudget = "{LOOKS:g}/s"\nnotices = false\n[index]\nenabled = true\nengine = "{ENGINE}"\n'
        )
        print(f"files                 {FILES:,} in {FILES // FOLDER_OF} folders, {size / 1e6:.1f} MB")
        subprocess.run([*AFRESH, "add", "--recursive", str(tree)], cwd=home, check=True, stdout=subprocess.DEVNULL)
        store = home / "afresh.db"
        began = time.monotonic()
        with subprocess.Popen([*AFRESH, "run"], cwd=home, stdout=subprocess.DEVNULL) as runner:
            try:
                wait("all files indexed", lambda: copies(store) >= FILES)
                taken, cpu = time.monotonic() - began, sum(_cpu(runner.pid))
                print(f"indexed               after {taken:.0f} s ({LOOKS:,.0f} looks a second), {cpu:.0f} s of CPU")
                kept = sum(path.stat().st_size for path in home.rglob("afresh.db*") if path.is_file())
                kept += sum(path.stat().st_size for path in home.glob("afresh.db.words/*/*"))
                print(f"store with the index  {kept / size:.2f} times the files")
                _searched(store)
                _edited(store, paths)
            finally:
                runner.send_signal(signal.SIGTERM)
                runner.wait(60)  # it says what it did on standard error
        done = subprocess.run([*AFRESH, "check", "--json"], cwd=home, check=True, capture_output=True, text=True)
        facts = json.loads(done.stdout)
        print(f"check                 {facts['copies']:,} copies, {len(facts['index_problems'])} problems")


def _searched(store: Path) -> None:
    cpu = []
    with Search(store, tell=False) as search:
        for _ in range(QUERIES):
            query = " ".join(RNG.choices(WORDS, cum_weights=WEIGHTS, k=2))
            began = time.thread_time()
            search.search(query)
            cpu.append(1e3 * (time.thread_time() - began))
    slow = statistics.quantiles(cpu, n=20)[-1]
    print(f"a search, 2 words     {statistics.median(cpu):.1f} ms of CPU (median), {slow:.1f} (p95)")


def _edited(store: Path, paths: list[Path]) -> None:
    """How long until each edit is found; at this budget a round over all files takes so long as well."""
    when = {}
    for nth, path in enumerate(RNG.sample(paths, EDITS)):
        path.write_text(f"# Edit\nedited{nth:04d}\n")
        when[f"edited{nth:04d}"] = time.monotonic()
    found: dict[str, float] = {}
    round_trip = FILES / LOOKS
    with Search(store, tell=False) as search:
        while len(found) < len(when) and time.monotonic() - min(when.values()) < 4 * round_trip + 60:
            for word in when.keys() - found.keys():
                if search.search(word).results:
                    found[word] = time.monotonic() - when[word]
            time.sleep(0.2)
    took = sorted(found.values())
    if not took:
        raise SystemExit("no edit was found")
    print(f"edits found           {len(took)} of {EDITS}; after {statistics.median(took):.1f} s (median),", end=" ")
    print(f"{took[-1]:.1f} s (longest); a round over all files takes {round_trip:.0f} s")


def _cpu(pid: int) -> tuple[float, float]:
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) / 100.0, int(fields[12]) / 100.0


if __name__ == "__main__":
    main()
