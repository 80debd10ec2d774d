"""How well requests for pages that are new are foretold from the links that lead to them: error beside pages alike.

    python benchmarks/new_requests.py DATA

DATA is a folder with `requests/wikispeedia`: 4,604 articles, their links and 24,875 sessions. Half of the articles are
known from the start; the others become known one after another, by the links of the articles that are known. What is
foretold of an article is scored by its requests in the next 1,700 sessions, and learned from after these. Marks are
those of `afresh.daemon.foretold`; the name of an article is the text of the links to it. Printed is the deviance of a
Poisson distribution per page, and how much less of it is left.
"""

import gzip
import sys
from pathlib import Path
from urllib.parse import unquote

import numpy as np

from afresh.daemon.foretold import links_mark, marks_of
from afresh.estimate.foretelling import Foretelling, place_of

AHEAD = 1_700  # sessions


def deviance(requests: np.ndarray, told: np.ndarray) -> float:
    """How far what was told is from what came, per page."""
    log = np.where(requests > 0, requests * np.log(np.maximum(requests, 1e-9) / told), 0.0)
    return float(2.0 * (log - requests + told).mean())


def main() -> None:
    """Print how far each is off."""
    data = Path(sys.argv[1]) / "requests"
    with gzip.open(data / "wikispeedia.articles.tsv.gz", "rt") as packed:
        lines = packed.read().split("\n")
    names = [unquote(line.split("\t")[0]) for line in lines if line.strip() and not line.startswith("#")]
    with np.load(data / "wikispeedia.npz") as file:
        pages, offsets, links = file["pages"], file["offsets"], file["links"]
    names = names[-(int(links.max()) + 1) :]
    count, sessions = len(names), len(offsets) - 1
    session = np.repeat(np.arange(sessions), np.diff(offsets))
    asked = pages >= 0
    moments = [np.empty(0, np.int64)] * count
    order = np.argsort(pages[asked], kind="stable")
    cuts = np.searchsorted(pages[asked][order], np.arange(count + 1))
    for page in range(count):
        moments[page] = np.sort(session[asked][order][cuts[page] : cuts[page + 1]])
    source, target = links[:, 0], links[:, 1]
    leads = np.bincount(source, minlength=count)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        known = np.zeros(count, bool)
        late = rng.permutation(count)[: count // 2]
        known[:] = True
        known[late] = False
        births = np.sort(rng.integers(500, sessions - AHEAD, len(late)))
        foretelling = Foretelling()
        waiting: list[tuple[int, list[int], float, float]] = []
        rows = []
        for birth, page in zip(births.tolist(), late.tolist(), strict=True):
            while waiting and waiting[0][0] + AHEAD <= birth:
                _, marks, came, usual = waiting.pop(0)
                foretelling.learn(marks, came, usual)
            to = source[(target == page) & known[source]]
            known[page] = True
            if not len(to):
                continue
            referrer = int(rng.choice(to))
            usual = float(np.searchsorted(session, birth)) / birth / count  # requests a session for an average page
            of_referrer = (np.searchsorted(moments[referrer], birth) + 1.0) / (birth + 1.0 / usual)
            marks = marks_of(of_referrer / usual, int(leads[referrer]), 1, names[page], "")
            marks.append(place_of(links_mark(len(to) / float(known.sum()))))
            came = float(np.diff(np.searchsorted(moments[page], [birth, birth + AHEAD]))[0])
            factor = foretelling.factor(marks) if foretelling.used else 1.0
            rows.append((came, usual * AHEAD, usual * AHEAD * factor))
            waiting.append((birth, marks, came, usual * AHEAD))
        found = np.array(rows)
        half = found[len(found) // 2 :]
        without, told = deviance(half[:, 0], half[:, 1]), deviance(half[:, 0], half[:, 2])
        mean = deviance(half[:, 0], np.full(len(half), half[:, 0].mean()))
        correlation = np.corrcoef(np.log(half[:, 2] / half[:, 1]), np.log1p(half[:, 0]))[0, 1]
        print(
            f"seed {seed}: {len(half):,} pages of the second half, {half[:, 0].mean():.2f} requests each; deviance "
            f"{without:.3f} as pages alike ({mean:.3f} with their true mean), {told:.3f} foretold "
            f"({1 - told / without:.1%} less); correlation {correlation:.2f}; judged {foretelling.judged:,}, "
            f"score {foretelling.score:.1f}"
        )


if __name__ == "__main__":
    main()
