"""From changes in the store to messages in the outbox."""

import json
import math
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence

from afresh.detect import Rules
from afresh.detect.diff import diff
from afresh.detect.texts import MAX_TEXT_BYTES, blocks_of
from afresh.errors import StoreError
from afresh.notify.message import FULL_ITEMS, Item, item_of, trouble_item
from afresh.notify.rules import FAILING, WELL, Rule, identifier
from afresh.store import LastingStore
from afresh.store.base import News
from afresh.store.outbox import GATHERED, WAITING, Message, Outbox
from afresh.store.versions import around, copy_before
from afresh.types import BACK, Copy, Crawl, Outcome

BATCH = 50  # changes that are read at once, and whose messages are written in one transaction
MAX_WAITING = 1_000  # messages of a rule; beyond it the rule reads no further, and the changes wait in the store
MAX_GATHERED = 5_000  # changes that wait for a digest: the same
MAX_READ = 16 << 20  # bytes of a version whose text is compared
DEAR_SECONDS = 1.0  # of a processor: while changes wait, those of a host whose texts take more are told without text
CHEAP_SECONDS = 0.01  # what takes less is always told in full
SECONDS_A_BYTE = 4e-7  # that reading and comparing takes where all of a large page is new
SPENT_HALF = 60.0  # seconds after which half of that is forgotten
MAX_SPENT = 10_000  # hosts


class Gatherer:
    """Reads what changed, for all rules; nothing here is on the event loop of the crawl."""

    def __init__(
        self,
        store: LastingStore,
        rules: Sequence[Rule],
        *,
        counts: Callable[[str], Rules],
        clock: Callable[[], float],
        words: Callable[[str], str] = str,
    ) -> None:
        self.store, self.rules, self.counts, self.clock = store, tuple(rules), counts, clock
        self.words = words  # of the reason why a crawl failed
        self.outbox = Outbox(store)
        self.took = 0.0  # seconds of a processor, the last step
        self._spent: OrderedDict[str, tuple[float, float]] = OrderedDict()  # by host: how long, and as of when

    def begin(self) -> None:
        """Rules that are new begin here."""
        self.outbox.begin(rule.name for rule in self.rules)

    def step(self) -> int:
        """Read some changes on; how many. 0: there is nothing new, or no rule has room."""
        began = time.thread_time()
        try:
            return self._step()
        finally:
            self.took = time.thread_time() - began

    def _step(self) -> int:
        told = {each.name: each for each in self.outbox.all()}
        room = [
            rule
            for rule in self.rules
            if rule.name in told  # else it was forgotten meanwhile: the settings do not name it any more
            and told[rule.name].waiting < MAX_WAITING
            and told[rule.name].gathered < MAX_GATHERED
        ]
        if not room:
            return 0
        positions = {rule.name: told[rule.name].position for rule in room}
        some = self._news(min(positions.values()))
        if not some:
            return 0
        gathered = Counter({rule.name: told[rule.name].gathered for rule in room})
        messages: list[Message] = []
        more_wait = len(some) == BATCH
        for news in some:
            made = self._messages(news, room, positions, gathered, more_wait=more_wait)
            gathered.update(message.rule for message in made if message.state == GATHERED)
            messages += made
        last = some[-1].number
        self.outbox.add(messages, {name: max(position, last) for name, position in positions.items()})
        return len(some)

    def _news(self, after: int) -> list[News]:
        """What comes next; failures only where somebody is told of them."""
        if any(rule.asks_for_failures for rule in self.rules):
            return self.store.news(after=after, limit=BATCH)
        return [News(number, crawl) for number, crawl in self.store.changes(after=after, limit=BATCH)]

    def _messages(
        self,
        news: News,
        rules: Sequence[Rule],
        positions: Mapping[str, int],
        gathered: Mapping[str, int],
        *,
        more_wait: bool,
    ) -> list[Message]:
        number, crawl = news.number, news.crawl
        heard = [
            (rule, kind) for rule in rules if positions[rule.name] < number for kind in rule.hears(crawl, news.trouble)
        ]
        state = self.store.state(crawl.url) if heard else None
        if state is None:
            return []
        host, never_seen = state.page.host, crawl.outcome is Outcome.GONE and state.fetched is None
        heard = [
            (rule, kind)
            for rule, kind in heard
            if rule.concerns(crawl.url, host) and not (kind == Outcome.GONE and never_seen)
        ]
        changes = [rule for rule, kind in heard if kind not in (FAILING, WELL)]
        made: list[tuple[Rule, Item, tuple[str, ...]]] = []
        if changes:
            began = time.thread_time()
            words = any(rule.asks_for_words for rule in changes)
            item, before, after = self._read(number, crawl, host, more_wait=more_wait, words=words)
            self._spend(host, time.thread_time() - began)
            made += [(rule, item, ()) for rule in changes if rule.words_match(before, after)]
        title = self.store.titles([crawl.url])[0] if len(heard) > len(changes) else ""
        for rule, kind in heard:
            if kind in (FAILING, WELL):
                why = self.words(crawl.reason) if kind == FAILING else ""
                made.append((rule, trouble_item(crawl, host, number, kind, abs(news.trouble), why, title), (kind,)))
        now = self.clock()
        return [self._message(rule, item, more, now, gathered[rule.name]) for rule, item, more in made]

    @staticmethod
    def _message(rule: Rule, item: Item, more: Sequence[str], now: float, gathered: int) -> Message:
        digest = rule.digest is not None
        body = json.dumps((item.brief() if digest and gathered >= FULL_ITEMS else item).facts())
        name = identifier(rule.name, item.number, item.url, repr(item.time), *more)
        when = rule.due(max(now, item.time) if not digest else item.time)
        return Message(rule.name, name, now, when, body, GATHERED if digest else WAITING)

    def _spent_on(self, host: str) -> float:
        spent, then = self._spent.get(host, (0.0, 0.0))
        return spent * math.exp2((then - time.monotonic()) / SPENT_HALF)

    def _spend(self, host: str, seconds: float) -> None:
        self._spent[host] = self._spent_on(host) + seconds, time.monotonic()
        self._spent.move_to_end(host)
        if len(self._spent) > MAX_SPENT:
            self._spent.popitem(last=False)

    def _read(
        self, number: int, crawl: Crawl, host: str, *, more_wait: bool, words: bool
    ) -> tuple[Item, str | None, str | None]:
        """What is told of a change, with all text before and after; None where that is not known, or is too dear while
        more changes wait and no rule asks for `words`."""
        before: Copy | None = None
        after: Copy | None = None
        gone, whole = crawl.outcome is Outcome.GONE, crawl.outcome is Outcome.NEW or crawl.reason == BACK
        try:
            if gone:
                before = copy_before(self.store, crawl.url, number, most=MAX_READ)
            else:
                before, after = around(self.store, crawl.url, number, most=MAX_READ)
        except StoreError:
            before = after = None  # damaged: the change is told without its text
        counts = self.counts(host)
        size = sum(min(len(copy.body), MAX_TEXT_BYTES) for copy in (before, after) if copy is not None)
        expected = size * SECONDS_A_BYTE
        is_dear = more_wait and expected > CHEAP_SECONDS and self._spent_on(host) + expected > DEAR_SECONDS
        is_read = words or not is_dear
        old, new = (None if copy is None or not is_read else blocks_of(copy, counts) for copy in (before, after))
        rows = None
        if new is not None and (whole or old is not None) and not is_dear:
            rows = diff([] if whole else old or [], new)
        title = self.store.titles([crawl.url])[0]
        item = item_of(crawl, host, number, before=before, after=after, rows=rows, title=title)
        was, now = (
            None if blocks is None else "\n".join(" ".join(each.split()) for each in blocks) for blocks in (old, new)
        )
        return item, "" if whole else was, "" if gone else now
