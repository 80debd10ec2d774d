"""Compiled code on disk must not outlive the sources it was made from."""

import shutil
import subprocess
import sys
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
