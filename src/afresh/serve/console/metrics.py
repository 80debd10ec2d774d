"""/metrics for Prometheus: few names, which stay. They are listed in `NAMES`, and etc/ is checked against that."""

from collections.abc import Iterable
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from afresh.serve.console.facts import Object

# Names as a query writes them, with what they say. What ends in _total counts since the runner began.
NAMES = {
    "afresh_up": "1 while a runner answers",
    "afresh_facts_age_seconds": "How old the figures of the collection are, where finding them takes long",
    "afresh_freshness_ratio": "Share of requests (or of pages) that find a fresh copy, as believed",
    "afresh_calibration_bias_ratio": "By how much copies turn out staler than was said; below 0: fresher",
    "afresh_pages": "Pages that are kept",
    "afresh_copies": "Pages that have a copy",
    "afresh_failing_pages": "Pages whose last crawl failed, by reason",
    "afresh_gone_pages": "Pages that are gone",
    "afresh_failing_hosts": "Hosts that fail, of those with pages",
    "afresh_paused": "1 while everything is paused",
    "afresh_paused_hosts": "Hosts that are paused",
    "afresh_paused_pages": "Pages that are paused by themselves",
    "afresh_budget_per_second": "The budget, in its own unit",
    "afresh_price": "What a refresh must gain",
    "afresh_politeness_limit_per_second": "Crawls a second that politeness allows",
    "afresh_waiting_pages": "Pages that wait for their first crawl",
    "afresh_under_way": "Fetches under way",
    "afresh_inbox_entries": "Wishes and batches of evidence that wait",
    "afresh_store_bytes": "Bytes that the store uses",
    "afresh_crawls_total": "Crawls, by outcome",
    "afresh_failures_total": "Crawls that failed, by reason",
    "afresh_decisions_total": "Orders that the schedule gave",
    "afresh_put_off_total": "Orders that were given back, as their host's turn was not theirs",
    "afresh_store_write_seconds": "How long a batch took to be durable",
    "afresh_signals_total": "Signals that were heard, by sender",
    "afresh_signal_precision_ratio": "Share of a sender's signals that meant a change",
    "afresh_notify_failures": "Messages of a rule that failed in a row; 0: it reaches whom it tells",
    "afresh_answers_total": "Answers that serving caches gave readers, by how: hit, stale, checked, miss and others",
    "afresh_receiver_deliveries_total": "Deliveries that others sent, by what became of them",
}
MAX_SENDERS = 50  # with a time series of their own


class _Of(Collector):
    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = list(metrics)

    def collect(self) -> Iterable[Metric]:
        return self._metrics


def exposition(collection: Object, counts: Object | None, grades: list[Object], now: float) -> bytes:
    """All metrics as Prometheus reads them: of the collection, of what a runner counted, and of who sends signals."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Of(_metrics(collection, counts, grades, now)))
    return generate_latest(registry)


MEDIA = CONTENT_TYPE_LATEST


def _gauge(name: str, value: float | None) -> list[Metric]:
    return [] if value is None else [GaugeMetricFamily(name, NAMES[name], value=float(value))]


def _counter(name: str, label: str, counts: dict[str, float]) -> Metric:
    made = CounterMetricFamily(name.removesuffix("_total"), NAMES[name], labels=[label])
    for value, count in counts.items():
        made.add_metric([value.encode("utf-8", "replace").decode()], count)
    return made


def _metrics(said: Object, counts: Object | None, grades: list[Object], now: float) -> Iterable[Metric]:
    calibration: Object = said["calibration"] or {}
    yield from _gauge("afresh_up", counts is not None)
    yield from _gauge("afresh_facts_age_seconds", max(now - said["time"], 0.0))
    yield from _gauge("afresh_freshness_ratio", said["expected_freshness"])
    yield from _gauge("afresh_calibration_bias_ratio", calibration.get("bias"))
    yield from _gauge("afresh_pages", said["pages"])
    yield from _gauge("afresh_copies", said["copies"])
    failing = GaugeMetricFamily("afresh_failing_pages", NAMES["afresh_failing_pages"], labels=["reason"])
    for reason, pages in said["failing"].items():
        failing.add_metric([reason.encode("utf-8", "replace").decode()], pages)
    yield failing
    yield from _gauge("afresh_gone_pages", said["gone"])
    yield from _gauge("afresh_failing_hosts", (said["failing_hosts"] or {"hosts": 0})["hosts"])
    paused = said["paused"]
    yield from _gauge("afresh_paused", paused["everything"])
    yield from _gauge("afresh_paused_hosts", len(paused["hosts"]))
    yield from _gauge("afresh_paused_pages", paused["pages"])
    yield from _gauge("afresh_budget_per_second", said["budget"])
    yield from _gauge("afresh_price", said["price"])
    yield from _gauge("afresh_politeness_limit_per_second", said["politeness_rate"])
    yield from _gauge("afresh_waiting_pages", said["waiting"])
    yield from _gauge("afresh_inbox_entries", said["inbox_entries"])
    yield from _gauge("afresh_store_bytes", said["used_bytes"])
    told = GaugeMetricFamily("afresh_notify_failures", NAMES["afresh_notify_failures"], labels=["rule"])
    for each in said["notify"]:
        told.add_metric([each["rule"]], each["failures"])
    yield told
    if said["receiver"] is not None:
        deliveries = {name: said["receiver"][name] for name in ("accepted", "refused")}
        yield _counter("afresh_receiver_deliveries_total", "outcome", deliveries)
    if counts is not None:
        yield from _counted(counts)
        yield from _of_senders(grades)


def _counted(counts: Object) -> Iterable[Metric]:
    yield from _gauge("afresh_under_way", counts["under_way"])
    yield _counter("afresh_crawls_total", "outcome", counts["outcomes"])
    yield _counter("afresh_failures_total", "reason", counts["failures"])
    yield _counter("afresh_answers_total", "how", counts["answers"])
    for name, key in (("afresh_decisions_total", "ordered"), ("afresh_put_off_total", "released")):
        yield CounterMetricFamily(name.removesuffix("_total"), NAMES[name], value=counts[key])
    name, total, buckets = "afresh_store_write_seconds", 0, []
    for bound, count in counts["writes"]:
        total += count
        buckets.append(("+Inf" if bound is None else str(bound), float(total)))
    yield HistogramMetricFamily(name, NAMES[name], buckets=buckets, sum_value=counts["write_seconds"])


def _of_senders(grades: list[Any]) -> Iterable[Metric]:
    heard: dict[str, float] = {}
    right: dict[str, list[float]] = {}
    for grade in grades:
        heard[grade["sender"]] = heard.get(grade["sender"], 0.0) + grade["heard"]
        if grade["precision"] is not None:
            right.setdefault(grade["sender"], []).extend([grade["precision"] * grade["heard"], grade["heard"]])
    most = sorted(heard, key=lambda sender: -heard[sender])[:MAX_SENDERS]
    yield _counter("afresh_signals_total", "sender", {sender: heard[sender] for sender in most})
    name = "afresh_signal_precision_ratio"
    made = GaugeMetricFamily(name, NAMES[name], labels=["sender"])
    for sender in most:
        amounts = right.get(sender, [])
        if total := sum(amounts[1::2]):
            made.add_metric([sender], sum(amounts[::2]) / total)
    yield made
