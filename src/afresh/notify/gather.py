"""From changes in the store to messages in the outbox."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from afresh.detect import Rules
from afresh.detect.diff import diff
from afresh.detect.texts import blocks_of
from afresh.errors import StoreError
from afresh.notify.message import FULL_ITEMS, Item, item_of
from afresh.notify.rules import Rule, identifier
from afresh.store import LastingStore
from afresh.store.outbox import GATHERED, WAITING, Message, Outbox
from afresh.store.versions import around, copy_before
from afresh.types import BACK, Copy, Crawl, Outcome

BATCH = 50  # changes that are read at once, and whose messages are written in one transaction
MAX_WAITING = 1_000  # messages of a rule; beyond it the rule reads no further, and the changes wait in the store
MAX_GATHERED = 5_000  # changes that wait for a digest: the same
MAX_READ = 16 << 20  # bytes of a version whose text is compared


class Gatherer:
    """Reads what changed, for all rules; nothing here is on the event loop of the crawl."""

    def __init__(
        self, store: LastingStore, rules: Sequence[Rule], *, counts: Callable[[str], Rules], clock: Callable[[], float]
    ) -> None:
        self.store, self.rules, self.counts, self.clock = store, tuple(rules), counts, clock
        self.outbox = Outbox(store)

    def begin(self) -> None:
        """Rules that are new begin here."""
        self.outbox.begin(rule.name for rule in self.rules)

    def step(self) -> int:
        """Read some changes on; how many. 0: there is nothing new, or no rule has room."""
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
        changes = self.store.changes(after=min(positions.values()), limit=BATCH)
        if not changes:
            return 0
        gathered = Counter({rule.name: told[rule.name].gathered for rule in room})
        messages: list[Message] = []
        for number, crawl in changes:
            made = self._messages(number, crawl, room, positions, gathered)
            gathered.update(message.rule for message in made if message.state == GATHERED)
            messages += made
        last = changes[-1][0]
        self.outbox.add(messages, {name: max(position, last) for name, position in positions.items()})
        return len(changes)

    def _messages(
        self,
        number: int,
        crawl: Crawl,
        rules: Sequence[Rule],
        positions: Mapping[str, int],
        gathered: Mapping[str, int],
    ) -> list[Message]:
        some = [rule for rule in rules if positions[rule.name] < number and crawl.outcome in rule.on]
        state = self.store.state(crawl.url) if some else None
        if state is None:
            return []
        host = state.page.host
        some = [rule for rule in some if rule.concerns(crawl, host)]
        if not some or (crawl.outcome is Outcome.GONE and state.fetched is None):  # nobody has ever seen it
            return []
        item, before, after = self._read(number, crawl, host)
        now, messages = self.clock(), []
        for rule in some:
            if rule.words_match(before, after):
                digest = rule.digest is not None
                brief = digest and gathered[rule.name] >= FULL_ITEMS
                body = json.dumps((item.brief() if brief else item).facts())
                name = identifier(rule.name, number, crawl.url, repr(crawl.time))
                when = rule.due(max(now, crawl.time) if not digest else crawl.time)
                messages.append(Message(rule.name, name, now, when, body, GATHERED if digest else WAITING))
        return messages

    def _read(self, number: int, crawl: Crawl, host: str) -> tuple[Item, str | None, str | None]:
        """What is told of a change, with all text before and after; None where that is not known."""
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
        old, new = (None if copy is None else blocks_of(copy, counts) for copy in (before, after))
        rows = None
        if new is not None and (whole or old is not None):
            rows = diff([] if whole else old or [], new)
        item = item_of(crawl, host, number, before=before, after=after, rows=rows)
        was, now = (
            None if blocks is None else "\n".join(" ".join(each.split()) for each in blocks) for blocks in (old, new)
        )
        return item, "" if whole else was, "" if gone else now
