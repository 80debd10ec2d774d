"""The command line as people use it: a real process for every call."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def afresh(tmp_path: Path) -> Run:
    """Call `afresh` in an empty folder of its own."""

    def call(*words: str, stdin: str = "", timeout: float = 60.0) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", "from afresh.cli import main; main()", *words],
            cwd=tmp_path,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            env={**os.environ, "COLUMNS": "200"},
        )

    return call
