import re
from pathlib import Path

import pytest

from afresh.lab import EXPERIMENTS
from afresh.mirror.costs import COSTS, Seen
from afresh.types import Copy, Fetched

PAGE = (Path(__file__).parent.parent.parent / "docs" / "mirror.md").read_text()


def test_the_snippets_do_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    function, learner = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    exec(learner, {})
    assert f"# {capsys.readouterr().out.strip()}" in learner
    names: dict[str, object] = {}
    exec(function, names)
    fetched = Fetched("u", 1.0, 0.1, 200, b"one two three")
    seen = Seen("u", True, 0.5, 1.0, 9.0, None, fetched, Copy("u", b"one two four", "text/plain", 0.0, 0.0))
    assert names["cost"](seen) == 2.0  # type: ignore[operator]


def test_every_cost_and_every_experiment_is_named() -> None:
    for cost in COSTS:
        assert f'`"{cost}"`' in PAGE
    for name in EXPERIMENTS:
        if name.startswith("mirror-") and not name.startswith("mirror-fig"):
            assert f"`{name}`" in PAGE or f"lab run {name}" in PAGE
    assert "MEASURED" not in PAGE
