"""Compiled code on disk must not outlive the sources it was made from."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import afresh

SOURCE = Path(afresh.__file__).parent
ASK = "from afresh.value import crawl_value; print(crawl_value(5.0, change_rate=0.5))"


def value(folder: Path) -> float:
    done = subprocess.run(
        [sys.executable, "-c", ASK], capture_output=True, text=True, check=True, env={"PYTHONPATH": str(folder)}
    )
    return float(done.stdout)


def test_a_change_in_another_file_is_noticed(tmp_path: Path) -> None:
    shutil.copytree(SOURCE, tmp_path / "afresh", ignore=shutil.ignore_patterns("__pycache__"))
    before = value(tmp_path)
    assert value(tmp_path) == before
    assert list((tmp_path / "afresh" / "__pycache__" / "compiled").rglob("*.nbi"))
    callee = tmp_path / "afresh" / "value" / "poisson.py"
    text = callee.read_text()
    changed = text.replace("return 1.0 - math.exp(-y) * (1.0 + y)", "return 2.0 - 2.0 * math.exp(-y) * (1.0 + y)")
    assert changed != text
    callee.write_text(changed)
    assert abs(value(tmp_path) - 2 * before) < 1e-9


CHECK = """
from afresh.value.compiled import heard
names = []
with heard(names.append):
    from afresh.value import crawl_value
    crawl_value(5.0, change_rate=0.5)
print(len(names))
"""


def test_what_is_said_to_be_compiled_is_compiled_and_only_once() -> None:
    """Loading from disk is no compiling: nobody is told to wait."""
    counts = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(2):
            done = subprocess.run(
                [sys.executable, "-c", CHECK],
                capture_output=True,
                text=True,
                check=True,
                env={"PYTHONPATH": str(SOURCE.parent), "NUMBA_CACHE_DIR": folder},
            )
            counts.append(int(done.stdout))
    assert counts[0] > 0
    assert counts[1] == 0


CALLED = """
from numba import from_dtype, int64
from afresh.schedule.wheel.policies import seen
from afresh.schedule.wheel.table import PAGE
from afresh.value.sums import page_change_rate
seen.compile((from_dtype(PAGE), int64))
for function in (seen, page_change_rate._part):
    print(*(result.fndesc.inline for result in function.overloads.values()))
"""


def test_what_an_inlined_function_calls_is_not_inlined_with_it(tmp_path: Path) -> None:
    """numba hands this option down to all that is first compiled for a caller: the tick took six times as long."""
    environment = {"PYTHONPATH": str(SOURCE.parent), "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", CALLED], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.split() == ["True", "False"]


def test_where_the_installation_cannot_be_written_the_users_cache_folder_is_used(tmp_path: Path) -> None:
    shutil.copytree(SOURCE, tmp_path / "afresh", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "afresh" / "__pycache__").write_text("a file where a folder would go: nobody can write into it")
    cache = tmp_path / "cache"
    ask = ASK.replace("print", "assert 0 <") + " < 10"
    environment = {"PYTHONPATH": str(tmp_path), "XDG_CACHE_HOME": str(cache), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, "-c", ask], check=True, env=environment)
    assert list((cache / "afresh" / "compiled").rglob("*.nbi"))
    environment["XDG_CACHE_HOME"] = "/proc/nowhere"  # then it is compiled every time, and works
    subprocess.run([sys.executable, "-c", ask], check=True, env=environment)
