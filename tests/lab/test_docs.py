import re
from pathlib import Path

import pytest

from afresh.lab import EXPERIMENTS
from afresh.sim.replay import POLICIES

PAGE = (Path(__file__).parent.parent.parent / "docs" / "lab.md").read_text()


def test_the_policy_in_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (snippet,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    exec(snippet, {})
    assert 0.3 < float(capsys.readouterr().out) < 0.9


def test_every_policy_is_explained_and_every_measured_figure_exists() -> None:
    for policy in POLICIES:
        assert f"`{policy}`" in PAGE, policy
    assert set(re.findall(r"afresh lab run (fig\d+)", PAGE)) <= set(EXPERIMENTS)
    assert "MEASURED" not in PAGE
