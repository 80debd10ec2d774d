"""Learning for many pages: compiled, O(1) a crawl, 64 bytes a page, with priors that groups of pages share.

A page's crawls are kept as the eight sums of `posterior`, its requests as two counts that fade. Pages belong to groups
(a path pattern within a host within everything), each with Gamma priors over the silent rate α and the signal weight b,
and within the narrowest of them to those that are as loud: pages that send many signals are not like those that send
few. What a crawl would teach is weighed with a finer prior, of any shape (`points`), that pages as loud share.
At every crawl a few other pages are glanced at in turn; after a whole turn each group's priors become what its members
turned out to be, with some pages' worth of its parent's (empirical Bayes, by expectation and maximisation). Nothing
jumps: a schedule whose beliefs all change at the same moment would ring.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from afresh.estimate.curiosity import Copy, Prices, horizon, interest
from afresh.estimate.points import POINTS, Gammas, guessed, weigh_points
from afresh.estimate.posterior import SUMS, add_crawl, gamma_shape, geometric, mean_log, mode
from afresh.value.compiled import compiled
from afresh.value.kernels import page_threshold
from afresh.value.mistaken import NEVER, Rates, fresh_time_when_mistaken

Records = NDArray[Any]
Floats = NDArray[np.float64]

PAGE = np.dtype(
    [
        ("since", "f8"),  # watched since then
        ("asked", "f4"),  # how long after that the counts of requests were last brought up to date
        ("sums", "f4", (SUMS,)),
        ("heard", "f4"),  # signals
        ("requests", "f4"),  # a count that fades slowly
        ("burst", "f4"),  # and one that fades fast
        ("group", "i4"),  # of its kin and its loudness
        ("observations", "u2"),
        ("surprise", "u2"),  # how unlikely all the changes since the last unchanged crawl were, in 64ths of a nat
    ]
)
GROUP = np.dtype(
    [
        ("shape", "f8"),  # of the Gamma prior of α
        ("rate", "f8"),
        ("signal_shape", "f8"),  # of the Gamma prior of b
        ("signal_rate", "f8"),
        ("sums", "f8", (6,)),  # of the present turn: members, E α, E log α; those that were heard of, E b, E log b
        ("parent", "i8"),  # always an earlier one; the first group is its own
    ]
)
MOST_COUNTED = 65535
GUESS_SHAPE = 0.5  # of the first guess of α and of b: anything goes, over two orders of magnitude
GUESS_WEIGHT = 0.5  # first guess of b: a signal halves the freshness, more or less
GUESS_PAGES = 2.0  # how many pages' worth the first guess weighs
PARENT_PAGES = 5.0  # and a parent's prior, in a group
DEFAULT_MEMORY = 150 * 86400.0  # seconds; pages change their ways
DEFAULT_OPTIMISM = 0.5  # 0: the arithmetic mean of α, 1: the geometric one, between: their weighted mean in logarithms
DEFAULT_PLAN = 20.0  # typical intervals that the first plan for learning is made for
DEFAULT_CURIOSITY = 10.0  # lengths of a plan for which what is learned counts, at the start of the first
LOUDNESSES = 4  # groups of one kin: nothing heard yet, quiet, ordinary, loud
QUIET, LOUD = 0.7, 1.3  # times the average signal rate
FLAPPING = 20.0  # nats: real bursts reach ten or so, a page that differs at every fetch any number
_GUESSED = guessed(GUESS_SHAPE, GUESS_WEIGHT)
SHORTEST_WATCH = 0.02  # typical intervals: a first signal right after the start does not mean signals without end

TOGETHER = 64  # neighbours that are glanced at one after another: a page alone would be far from the processor's cache
STRIDE = 0.618  # of all blocks, from one to the next
ENOUGH = 10_000  # pages that the points' priors are settled after, and the plain price is found by; at most
FEW_PAGES = 100.0  # less is not enough to settle them by, as long as there are others
PRICE_STEP, MOST_STEP = 3.0, 0.1  # how fast that follows: all these pages together move it by e³, one by e^0.1 at most
MOST_DEARER = 30.0  # exploring does not make a crawl dearer than this
MOST_WANTED = 20.0  # times the average crawl rate: no page counts for more in the plain price

# Indices of `control`. The moment is the latest one that was named; the average signal rate is that of the pages that
# were heard of, in the last whole turn, and the two after it are its sum and count in this one. The crawl rate is that
# of a page in the last whole turn, and what follows it the moment when that ended. The plain price is what a crawl
# would cost if nobody explored; then come how many pages were weighed in turn since the points' priors were settled,
# the first plan's length, and the block of pages that the hand is in.
HAND, MEMORY, GLANCES, GUESS_RATE, USED, CURIOSITY, OPTIMISM, MOMENT, AVERAGE, RATES, HEARD_OF = range(11)
CRAWL_RATE, TURNED, PLAIN_PRICE, WEIGHED, PLAN, BLOCK = range(11, 17)


class Table(NamedTuple):
    """All that is believed."""

    pages: Records
    groups: Records
    control: Floats
    prior: Floats  # of the points, by loudness, in logarithms
    found: Floats  # what pages turned out to be, by loudness, since that was settled


def new_table(
    pages: int,
    *,
    typical_rate: float,
    now: float,
    memory: float = DEFAULT_MEMORY,
    glances: int = 2,
    curiosity: float = DEFAULT_CURIOSITY,
    plan: float = DEFAULT_PLAN,
    optimism: float = DEFAULT_OPTIMISM,
) -> Table:
    """Nothing is known yet; any guess of the typical change rate within an order of magnitude or two will do.

    What was seen long ago counts less: a page's evidence fades with `memory` seconds of its crawls.
    """
    control = np.array([0.0, memory, glances, typical_rate, pages, curiosity, optimism, now] + 9 * [0.0])
    control[CRAWL_RATE], control[TURNED], control[PLAN] = typical_rate, now, plan
    prior = np.tile(_GUESSED, (LOUDNESSES, 1))
    table = Table(np.zeros(pages, PAGE), np.zeros(LOUDNESSES, GROUP), control, prior, np.zeros((LOUDNESSES, POINTS)))
    table.pages["since"] = now
    for group in table.groups:
        set_guess(group, typical_rate)
    return table


def set_guess(group: Any, typical_rate: float) -> None:
    """Let a group believe what is guessed before anything is seen."""
    group["shape"] = group["signal_shape"] = GUESS_SHAPE
    group["rate"] = GUESS_SHAPE / typical_rate
    group["signal_rate"] = GUESS_SHAPE / GUESS_WEIGHT


@compiled
def posterior_of(table: Table, page: int) -> tuple[float, float, float, float]:
    """(α, b, shape of α, shape of b) of a page, as `mode` finds them under its group's priors."""
    record = table.pages[page]
    group = table.groups[record.group]
    return mode(record.sums, group.shape, group.rate, group.signal_shape, group.signal_rate)


@compiled
def chances_of(table: Table, page: int) -> Floats:
    """How likely the page is to be each of the points."""
    record = table.pages[page]
    loudness = record.group % LOUDNESSES
    own, as_loud = table.groups[record.group], table.groups[loudness]
    chance = np.empty(POINTS)
    weigh_points(
        record.sums,
        float(table.control[GUESS_RATE]),
        table.prior[loudness],
        Gammas(own.shape, own.rate, own.signal_shape, own.signal_rate),
        Gammas(as_loud.shape, as_loud.rate, as_loud.signal_shape, as_loud.signal_rate),
        chance,
    )
    return chance


@compiled
def signal_rate_of(table: Table, page: int, now: float) -> float:
    """γ of a page, as it was counted."""
    record = table.pages[page]
    watched = max(0.0, now - record.since) + SHORTEST_WATCH / table.control[GUESS_RATE]
    return float(record.heard / watched)


@compiled
def learn_crawl(table: Table, page: int, elapsed: float, signals: float, changed: bool) -> None:
    """One checked interval: the copy was `elapsed` old, had heard `signals`, and had or had not changed."""
    record = table.pages[page]
    memory = table.control[MEMORY]
    if memory < math.inf:
        fading = math.exp(-elapsed / memory)
        for k in range(SUMS):
            record.sums[k] *= fading
    alpha, b = 0.0, 0.0
    if not changed:
        record.surprise = 0
    else:
        # Where little is known, geometric means: far out a change would be taken for a matter of course.
        alpha, b, shape, signal_shape = posterior_of(table, page)
        expected = shape * math.log1p(alpha * elapsed / shape) + b * signals
        unlikely = -math.log(max(-math.expm1(-expected), 1e-9))
        record.surprise = min(record.surprise + np.int64(64.0 * unlikely), MOST_COUNTED)
        alpha *= geometric(shape)
        b *= geometric(signal_shape)
    add_crawl(record.sums, elapsed, signals, changed, alpha, b)
    record.observations = min(record.observations + 1, MOST_COUNTED)


@compiled
def restlessness(surprise: int) -> float:
    """By how much a page is thought to change faster than its history says.

    One that differs at every fetch (a clock, a token) tells nothing of its rate but that it is high, and would be tried
    at shorter and shorter intervals. Once chance no longer explains it, belief runs ahead until it is left alone; the
    first fetch that finds no change ends that.
    """
    beyond = surprise / 64.0 - FLAPPING
    return math.exp(min(beyond, 3.4)) if beyond > 0.0 else 1.0


@compiled
def silent_rate_of(table: Table, page: int, alpha: float, shape: float) -> float:
    """α as the schedule should take it, half-way between its geometric and its arithmetic mean.

    The arithmetic one is ruled by high rates that are not yet excluded, and such pages would not be looked at; the
    harmonic one by low rates, and looks at too many.
    """
    cautious = geometric(shape) ** float(table.control[OPTIMISM])
    return float(alpha * cautious * restlessness(table.pages[page].surprise))


@compiled
def beliefs_of(table: Table, page: int, now: float) -> tuple[float, float, float]:
    """(change_rate, recall, false_rate) of a page, as the schedule should take them."""
    table.control[MOMENT] = max(table.control[MOMENT], now)
    alpha, b, shape, _ = posterior_of(table, page)
    silent_rate = silent_rate_of(table, page, alpha, shape)
    signal_rate = signal_rate_of(table, page, now)
    false_rate = signal_rate * math.exp(-b)
    change_rate = silent_rate + signal_rate - false_rate
    return change_rate, (signal_rate - false_rate) / change_rate, false_rate


@compiled
def fresh_probability_of(table: Table, page: int, elapsed: float, signals: float) -> float:
    """How likely the copy is to be current, over all rates that the page may have: what a crawl can check."""
    alpha, b, shape, signal_shape = posterior_of(table, page)
    stale = shape * math.log1p(alpha * elapsed / shape) + signal_shape * math.log1p(b * signals / signal_shape)
    return math.exp(-stale)


@compiled
def _follow_price(table: Table, believed: Rates, request_rate: float, price: float) -> None:
    """Move the plain price towards the one at which pages, as they are believed to be, ask for the crawls there are."""
    control = table.control
    plain = control[PLAIN_PRICE] if control[PLAIN_PRICE] > 0.0 else price
    wanted = 0.0
    if request_rate > 0.0:
        x = page_threshold(plain / request_rate, believed.silent_rate, believed.signal_rate, believed.weight, 0.0)
        if x < NEVER:
            wanted = min(1.0 / (fresh_time_when_mistaken(x, believed, 0.0, 0.0) * control[CRAWL_RATE]), MOST_WANTED)
    plain *= math.exp(min(PRICE_STEP / min(max(control[USED], 1.0), ENOUGH), MOST_STEP) * (wanted - 1.0))
    control[PLAIN_PRICE] = min(max(plain, price / MOST_DEARER), price)


@compiled
def _teaches(record: Any) -> bool:
    """Whether a page's crawls say anything of its rates that is worth exploring; `interest_of` says why not."""
    return record.heard > 0.0 and restlessness(record.surprise) <= 1.0


@compiled
def _settle_points(table: Table) -> None:
    """Let the points' priors become what pages turned out to be, with some pages' worth of those of all loudnesses."""
    whole = GUESS_PAGES * np.exp(_GUESSED)
    for loudness in range(LOUDNESSES):
        whole += table.found[loudness]
    whole /= whole.sum()
    for loudness in range(LOUDNESSES):
        own = table.found[loudness] + PARENT_PAGES * whole
        table.prior[loudness] = np.log(own / own.sum())
    table.found[:] = 0.0


@compiled
def _settle_in_time(table: Table) -> None:
    """Settle the points' priors after a third of the pages, if enough of them had something to show, or after all.

    A step does not go all the way, so often is better; but a few pages, or none, must not stand for all.
    """
    control = table.control
    used = min(control[USED], ENOUGH)
    if control[WEIGHED] >= used or (3.0 * control[WEIGHED] >= used and table.found.sum() >= FEW_PAGES):
        control[WEIGHED] = 0.0
        _settle_points(table)


@compiled
def interest_of(
    table: Table, page: int, now: float, request_rate: float, price: float, copy: Copy, in_turn: bool
) -> float:
    """What a crawl of this page is worth, against one from which nothing can be learned, at a price of a crawl.

    If `in_turn` all pages are asked about one after another, and this one counts for what pages are like. What is
    learned does not count for longer than it is remembered, and a page that differs at every fetch teaches nothing.
    Where no signal was ever heard there is one rate to learn and not two, and optimism is enough.
    """
    record, control = table.pages[page], table.control
    if not (control[CURIOSITY] > 0.0 and 0.0 <= request_rate < math.inf and 0.0 < price < math.inf):
        return 1.0
    alpha, b, shape, _ = posterior_of(table, page)
    believed = Rates(silent_rate_of(table, page, alpha, shape), signal_rate_of(table, page, now), b)
    age = max(0.0, now - record.since) * control[GUESS_RATE]
    ahead = min(horizon(control[CURIOSITY], age, control[PLAN]) / control[GUESS_RATE], control[MEMORY])
    chance = chances_of(table, page) if _teaches(record) and (in_turn or ahead > 0.0) else np.empty(0)
    if in_turn:
        _follow_price(table, believed, request_rate, price)
        if record.observations > 0 and chance.size > 0:
            table.found[record.group % LOUDNESSES] += chance
        control[WEIGHED] += 1.0
        _settle_in_time(table)
    if not (ahead > 0.0 and request_rate > 0.0 and chance.size > 0):
        return 1.0
    plain = control[PLAIN_PRICE] if control[PLAIN_PRICE] > 0.0 else price
    prices = Prices(price / request_rate, plain / request_rate)
    return interest(prices, ahead, believed, chance, float(control[GUESS_RATE]), copy)


@compiled
def _settle_group(table: Table, number: int) -> None:
    """Let a group's priors become what its members turned out to be."""
    group = table.groups[number]
    for half in range(2):
        count, mean, log_mean = group.sums[3 * half], group.sums[3 * half + 1], group.sums[3 * half + 2]
        if number == 0:
            typical = table.control[GUESS_RATE] if half == 0 else GUESS_WEIGHT
            worth, shape, rate = GUESS_PAGES, GUESS_SHAPE, GUESS_SHAPE / typical
        else:
            parent = table.groups[group.parent]
            worth = PARENT_PAGES
            shape, rate = (parent.shape, parent.rate) if half == 0 else (parent.signal_shape, parent.signal_rate)
        mean = (mean + worth * shape / rate) / (count + worth)
        log_mean = (log_mean + worth * mean_log(shape / rate, shape)) / (count + worth)
        found = gamma_shape(math.log(mean) - log_mean)
        if half == 0:
            group.shape, group.rate = found, found / mean
        else:
            group.signal_shape, group.signal_rate = found, found / mean


@compiled
def settle_groups(table: Table) -> None:
    """After a whole turn: children's sums count for their parents too, then parents teach children."""
    groups = table.groups
    for number in range(groups.size - 1, 0, -1):
        for k in range(6):
            groups[groups[number].parent].sums[k] += groups[number].sums[k]
    for number in range(groups.size):
        _settle_group(table, number)
    for number in range(groups.size):
        groups[number].sums[:] = 0.0
    control = table.control
    if control[HEARD_OF] > 0.0:
        control[AVERAGE] = control[RATES] / control[HEARD_OF]
    control[RATES] = control[HEARD_OF] = 0.0
    if control[MOMENT] > control[TURNED] and control[GLANCES] > 0.0:
        control[CRAWL_RATE] = 1.0 / (control[GLANCES] * (control[MOMENT] - control[TURNED]))
    control[TURNED] = control[MOMENT]


@compiled
def _listen(table: Table, page: int) -> None:
    """Put a page among those of its kin that are as loud as it is."""
    record, control = table.pages[page], table.control
    kin = record.group - record.group % LOUDNESSES
    loudness = 0
    if record.heard > 0.0:
        rate = signal_rate_of(table, page, control[MOMENT])
        control[RATES] += rate
        control[HEARD_OF] += 1.0
        if control[AVERAGE] > 0.0:
            loudness = 1 if rate < QUIET * control[AVERAGE] else 2 if rate < LOUD * control[AVERAGE] else 3
    record.group = kin + loudness


@compiled
def block_in_turn(nth: int, blocks: int) -> int:
    """The nth of so many blocks, in strides: all of them once, and any part of a turn is from all over.

    At first pages are crawled in the order of their numbers, and a hand that ran ahead of that would find out what
    pages are like only in the next turn.
    """
    if nth >= blocks:
        return nth  # the last pages do not fill a block
    stride = max(1, int(STRIDE * blocks))
    while math.gcd(stride, blocks) > 1:
        stride += 1
    return nth * stride % blocks


@compiled
def glance(table: Table) -> int:
    """Look at the page whose turn it is, for its group's sake; which one it was, −1: there is none."""
    used = int(table.control[USED])
    if used == 0:
        return -1
    nth = int(table.control[HAND])
    if nth >= used:
        nth = 0
    if nth % TOGETHER == 0:
        table.control[BLOCK] = block_in_turn(nth // TOGETHER, used // TOGETHER)
    page = min(int(table.control[BLOCK]) * TOGETHER + nth % TOGETHER, used - 1)
    record = table.pages[page]
    _listen(table, page)
    if record.observations > 0:
        alpha, b, shape, signal_shape = posterior_of(table, page)
        sums = table.groups[record.group].sums
        sums[0] += 1.0
        sums[1] += alpha
        sums[2] += mean_log(alpha, shape)
        if record.heard > 0.0:
            sums[3] += 1.0
            sums[4] += b
            sums[5] += mean_log(b, signal_shape)
    table.control[HAND] = nth + 1
    if nth + 1 >= used:
        table.control[HAND] = 0.0
        settle_groups(table)
    return page


@compiled
def sweep(table: Table, turns: int) -> None:
    """Whole turns at once: after many pages were read back. The points' priors need only some of the pages."""
    used, crawl_rate = int(table.control[USED]), table.control[CRAWL_RATE]
    table.control[HAND] = 0.0
    for _ in range(turns * used):
        glance(table)
    table.control[CRAWL_RATE] = crawl_rate  # these turns took no time and no crawls
    for _ in range(turns if table.control[CURIOSITY] > 0.0 else 0):
        for page in range(0, used, max(1, used // ENOUGH)):
            record = table.pages[page]
            if record.observations > 0 and _teaches(record):
                table.found[record.group % LOUDNESSES] += chances_of(table, page)
        _settle_points(table)


@compiled
def observe_many(table: Table, pages: Any, elapsed: Any, signals: Any, changed: Any) -> None:
    """Many crawls in the order in which they happened; the same as one after another, in any batching."""
    for k in range(pages.size):
        learn_crawl(table, pages[k], elapsed[k], signals[k], changed[k])
        for _ in range(int(table.control[GLANCES])):
            glance(table)
