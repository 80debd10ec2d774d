"""Pages whose kind is known, from a file: one JSON object a line with `url`, `type` and `html`."""

import gzip
import json
import lzma
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray
from publicsuffixlist import PublicSuffixList

from afresh.errors import InputError
from afresh.kinds.address import address
from afresh.kinds.bayes import KINDS, values
from afresh.kinds.criteria import WANTED, Criteria, criteria
from afresh.kinds.model import Model
from afresh.kinds.network import softmax
from afresh.kinds.scores import Scores, scores
from afresh.kinds.training import Examples, examples, logits_of, split, train
from afresh.reading import read

MAX_LINE = 64 << 20  # bytes of a page with its address
MAX_PAGES = 200_000
HINT = "Each line is a JSON object with url, type and html: see docs/kinds.md."

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Labelled:
    """A page whose kind is known; "" where it is missing, or none of `KINDS`."""

    url: str
    kind: str
    html: bytes


@dataclass(frozen=True, slots=True)
class Tested:
    """What came of a test."""

    scores: Scores
    pages: int
    ms_per_page: float  # of CPU: reading, criteria and model
    left_out: int = 0  # pages whose type is missing, or none that the model knows


def read_labelled(path: Path) -> Iterator[Labelled]:
    """The pages of a file, packed by xz or gzip or not at all."""
    if not path.is_file():
        raise InputError(f"There is no file {path}.", hint="Check its name.")
    try:
        with opened(path) as file:
            for number, line in _lines(file, path):
                yield _page(line, path, number)
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise InputError(f"{path} cannot be read: {error}.", hint=HINT) from None


def opened(path: Path) -> IO[bytes]:
    """The bytes of a file, unpacked where its name says that it is packed."""
    packed: Any = {".xz": lzma.open, ".gz": gzip.open}.get(path.suffix, open)
    return cast(IO[bytes], packed(path, "rb"))


def _lines(file: IO[bytes], path: Path) -> Iterator[tuple[int, bytes]]:
    number = 0
    while line := file.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            raise InputError(f"Line {number} of {path} is longer than {MAX_LINE >> 20} MiB.", hint=HINT)
        if number > MAX_PAGES:
            raise InputError(f"{path} has more than {MAX_PAGES:,} lines.", hint="Test it in parts.")
        if line.strip():
            yield number, line


def _page(line: bytes, path: Path, number: int) -> Labelled:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict):
        raise InputError(f"Line {number} of {path} is not a JSON object.", hint=HINT)
    url, kind, html = row.get("url"), row.get("type"), row.get("html")
    return Labelled(
        url if isinstance(url, str) else "",
        kind if isinstance(kind, str) and kind in KINDS else "",
        (html if isinstance(html, str) else "").encode("utf-8", "replace"),
    )


def criteria_of(page: Labelled) -> Criteria:
    """What is read off a page."""
    return criteria(read(page.html, "text/html; charset=utf-8", wanted=WANTED), page.url)


def examples_of(path: Path) -> Examples:
    """The pages of a file as they are trained on; pages of one domain stay together."""
    suffixes = PublicSuffixList()
    found, kinds, said, owners = [], [], [], []
    for number, page in enumerate(read_labelled(path)):
        if not page.kind:
            continue
        own = criteria_of(page)
        host = address(page.url).host
        found.append(own)
        kinds.append(page.kind)
        said.append(values(own.said))
        owners.append((suffixes.privatesuffix(host) or host) if host else f"#{number}")
    if len(set(owners)) < 2 * len(KINDS):
        raise InputError(f"{path} has pages of only {len(set(owners))} domains.", hint="Training needs hundreds.")
    return examples(found, kinds, said, owners)


def score_model(model: Model, path: Path) -> Tested:
    """Score a model on a labelled file."""
    said: list[NDArray[np.float64]] = []
    kinds: list[int] = []
    spent, left_out = 0.0, 0
    for page in read_labelled(path):
        if not page.kind:
            left_out += 1
            continue
        if not kinds:
            model.probabilities(criteria_of(page))  # what is compiled is loaded once, and is no page's cost
        began = time.process_time()
        said.append(model.probabilities(criteria_of(page)))
        spent += time.process_time() - began
        kinds.append(KINDS.index(page.kind))
    if not kinds:
        raise InputError(f"{path} holds no page of a known type.", hint=HINT)
    return Tested(scores(np.array(said), np.array(kinds)), len(kinds), 1e3 * spent / len(kinds), left_out)


def cross_validated(
    pages: Examples, folds: int, seed: int, progress: Progress = lambda done, total: None
) -> tuple[Scores, NDArray[np.float64]]:
    """Scores on pages of domains that the model was not trained on, and the probabilities themselves."""
    part, said = split(pages.owners, folds, seed), np.zeros((len(pages.kinds), len(KINDS)))
    for nth in range(folds):
        progress(nth, folds)
        within = np.flatnonzero(part == nth)
        network, bayes = train(pages.part(np.flatnonzero(part != nth)), seed)
        own = pages.part(within)
        logs = np.log(np.maximum(softmax(logits_of(network, own)), 1e-9))
        for row, log, value in zip(within.tolist(), logs, own.values.tolist(), strict=True):
            said[row] = softmax(bayes.logits(log, tuple(value)))
    return scores(said, pages.kinds), said
