import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

from afresh.sim.web import SiteOptions

PAGE = Path(__file__).parents[2] / "docs" / "synthetic-web.md"


def test_every_option_is_documented_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| `(.+?)` \|", PAGE.read_text(), re.MULTILINE))
    for field in fields(SiteOptions):
        assert eval(rows.pop(field.name)) == field.default
    assert not rows


def test_the_example_runs_and_tells_a_share() -> None:
    code = PAGE.read_text().partition("```python\n")[2].partition("```")[0]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    share = re.fullmatch(r"(\d+)% of requests were served fresh\n", done.stdout)
    assert share is not None
    assert int(share[1]) > 5
