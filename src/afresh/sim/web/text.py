"""Sentences and titles that fit a kind of host; enough of them that two paragraphs never agree by chance."""

from functools import cache, lru_cache
from zlib import crc32

from afresh.sim.web import dice

POOL = 1024  # sentences a kind has: ten random bits choose one
_INDEX = POOL - 1

_WORDS: dict[str, dict[str, str]] = {
    "news": {
        "who": "council,minister,harbour authority,court,union,transport office,weather service,committee,mayor,"
        "regulator,police,water board,parliament,commission,central bank,ambulance service",
        "did": "rejected,approved,postponed,announced,questioned,confirmed,criticised,reopened,defended,published,"
        "halted,reviewed",
        "what": "budget,ferry line,inquiry,bridge repair,school reform,strike,flood plan,election date,tunnel,"
        "tax proposal,housing scheme,airport extension,rail contract,harvest forecast,trade deal,"
        "power outage",
        "how": "on Monday,after a long debate,without comment,by a narrow vote,for the second time,late at night,"
        "against all expectations,with immediate effect,after two weeks of talks,in a short statement",
        "why": "because costs had doubled,while residents protested,as experts had advised,"
        "although funds are missing,since the report was incomplete,before the summer break,"
        "despite warnings from the coast,pending a new survey",
    },
    "blog": {
        "who": "my neighbour,an old friend,our dog,the baker,my sister,the tram driver,a colleague,the gardener,"
        "my notebook,the choir,a stranger,our landlord,the little shop,my bicycle,the cat,a postcard",
        "did": "reminded me of,improved,ruined,forgot,explained,repaired,painted,discovered,loved,lost,borrowed,"
        "finished",
        "what": "sourdough recipe,camping trip,kitchen shelf,old radio,piano lesson,knitting pattern,vegetable patch,"
        "night train,photo album,marathon plan,chess opening,rain barrel,bookcase,sewing machine,moss garden,"
        "kite",
        "how": "in the best way,over the weekend,twice this month,with a lot of patience,by accident,in the rain,"
        "for no good reason,with borrowed tools,before breakfast,to great applause",
        "why": "because I never learn,while the kettle sang,as it always happens,although I had a list,"
        "since nobody was looking,before the guests came,despite my best plans,until the lights went out",
    },
    "shop": {
        "who": "this kettle,the folding chair,the wool blanket,this lamp,the hiking boot,the steel bottle,"
        "this backpack,the oak table,the rain jacket,this keyboard,the garden hose,the frying pan,"
        "the desk fan,this tent,the clock,the mug",
        "did": "withstands,replaces,improves,fits,outlasts,simplifies,carries,protects,complements,survives,matches,"
        "holds",
        "what": "daily use,long journey,narrow kitchen,heavy load,cold morning,common adapter,standard shelf,"
        "wet weather,older model,small balcony,busy office,family picnic,steep trail,dusty workshop,"
        "full dishwasher,quiet corner",
        "how": "without effort,for many years,at a fair price,in three colours,with a spare part,at half the weight,"
        "with free delivery,in all sizes,with a two-year guarantee,straight from the box",
        "why": "because the seams are doubled,while saving energy,as our testers found,although it is light,"
        "since it needs no tools,before you notice it,despite its size,thanks to recycled steel",
    },
    "reference": {
        "who": "the river basin,this alloy,the treaty,an early manuscript,the observatory,this species,the dialect,"
        "the theorem,the railway,the comet,this mineral,the dynasty,the algorithm,the glacier,the orchestra,"
        "this compound",
        "did": "influenced,preceded,contains,describes,absorbs,resembles,replaced,crosses,defines,limits,predates,"
        "supports",
        "what": "northern plateau,second catalogue,trade route,magnetic field,coastal settlement,written standard,"
        "lunar calendar,sedimentary layer,family of curves,tonal system,legal code,breeding ground,"
        "energy level,irrigation network,copper age,boundary layer",
        "how": "to a large extent,according to later sources,in several regions,under high pressure,by definition,"
        "over three centuries,at low temperature,with few exceptions,in its original form,"
        "from the ninth century on",
        "why": "because records are sparse,while estimates vary,as measurements confirm,although this is disputed,"
        "since the survey was repeated,before the reform,despite local differences,"
        "following the standard notation",
    },
}
_LISTS = {kind: {part: text.split(",") for part, text in words.items()} for kind, words in _WORDS.items()}
_FRAMES = (
    "{Who} {did} the {what} {how} {why}.",
    "{How}, {who} {did} the {what} and the {what2}, {why}.",
    "It is said that {who} {did} the {what} {how}, {why}.",
    "{Who} {did} the {what}, and {who2} {did2} the {what2} {how}.",
    "There was little doubt that {who} {did} the {what} {how}.",
    "{Why_}, {who} {did} both the {what} and the {what2}.",
)
_TITLES = ("{Who} {did} {what}", "{What} {how}: what {who} {did}", "{Who} and the {what}", "On the {what}")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


class _Choice:
    """Words of a kind, chosen by the digits of one random number."""

    def __init__(self, kind: str, number: int) -> None:
        words, self._number = _LISTS[kind], number
        self.fields: dict[str, str] = {}
        for part in ("who", "did", "what", "how", "why"):
            options = words[part]
            for name in (part, f"{part}2"):
                self.fields[name] = options[self._next(len(options))]
            self.fields[part.capitalize()] = _capital(self.fields[part])
        if kind == "news":
            for name in ("who", "who2"):
                self.fields[name] = f"the {self.fields[name]}"
            self.fields["Who"] = _capital(self.fields["who"])
        self.fields["Why_"] = self.fields["Why"]

    def _next(self, size: int) -> int:
        self._number, digit = divmod(self._number, size)
        return digit

    def frame(self, frames: tuple[str, ...]) -> str:
        return frames[self._next(len(frames))].format_map(self.fields)


@cache
def sentences(kind: str) -> tuple[bytes, ...]:
    """The kind's pool of sentences; the same for every seed (a seed chooses among them)."""
    stream = dice.key(crc32(kind.encode()), dice.Stream.TEXT)
    return tuple(_Choice(kind, dice.bits(stream, number)).frame(_FRAMES).encode() for number in range(POOL))


@lru_cache(maxsize=50_000)
def title(kind: str, number: int) -> str:
    """A title chosen by a random number.

    >>> title("news", 0)
    'The council rejected budget'
    """
    return _capital(_Choice(kind, number).frame(_TITLES))


def paragraph(pool: tuple[bytes, ...], number: int) -> bytes:
    """Four to six sentences of a pool, chosen by one 64-bit number: 4 bits say how many, 10 bits choose each."""
    chosen = [pool[(number >> (4 + 10 * i)) & _INDEX] for i in range(4 + (number & 15) % 3)]
    return b" ".join(chosen)
