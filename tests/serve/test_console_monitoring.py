"""What etc/ asks of the metrics is there: a dashboard or an alert that names something else would stay empty."""

import json
import re
from pathlib import Path

import pytest

from afresh.serve.console.metrics import NAMES

ETC = Path(__file__).parent.parent.parent / "etc"
SUFFIXES = ("_bucket", "_sum", "_count")


def queries() -> list[tuple[str, str]]:
    dashboard = json.loads((ETC / "grafana-dashboard.json").read_text())
    found = [(panel["title"], each["expr"]) for panel in dashboard["panels"] for each in panel["targets"]]
    alerts = (ETC / "prometheus-alerts.yml").read_text()
    rules = re.findall(r"- alert: (\w+)\n\s+expr: (?:>-\n)?(.*?)\n\s+for:", alerts, re.DOTALL)
    assert len(rules) == alerts.count("- alert:") > 5
    return found + rules


def names_in(query: str) -> set[str]:
    def promised(name: str) -> str:
        whole = (name.removesuffix(suffix) for suffix in SUFFIXES if name.endswith(suffix))
        return next((each for each in whole if each in NAMES), name)

    return set(map(promised, re.findall(r"afresh_[a-z_]+", query)))


@pytest.mark.parametrize(("title", "query"), queries(), ids=lambda each: each[:40])
def test_every_query_names_a_metric_that_is_promised(title: str, query: str) -> None:
    names = names_in(query)
    assert names, title
    assert names <= set(NAMES), title
    for opening, closing in ("()", "{}", "[]"):
        assert query.count(opening) == query.count(closing), title


def test_every_metric_is_shown_somewhere() -> None:
    assert set().union(*(names_in(query) for _, query in queries())) == set(NAMES)
