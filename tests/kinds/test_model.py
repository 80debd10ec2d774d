import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.errors import InputError
from afresh.kinds.bayes import KINDS, OTHER, SILENT, STATED, tables, values
from afresh.kinds.criteria import WANTED, Criteria, criteria
from afresh.kinds.minimise import least
from afresh.kinds.model import MAX_BYTES, Model, shipped
from afresh.kinds.network import BITS, PLACES, WEIGHTS, inputs, places, softmax
from afresh.kinds.said import Said
from afresh.kinds.scores import scores
from afresh.kinds.training import examples, logits_of, split, train
from afresh.reading import read

PAGES = {
    "product": "<meta property=og:type content=product><h1>Lamp {n}</h1><p>$ {n}.00 <button>Add to cart</button>",
    "forum": "<h1>Why is {n}?</h1><div class=post>I ask.</div><div class=post>Reply: no.</div><div class=post>Reply",
    "article": "<title>News of {n}</title><article><p>The council met on day {n}, and many words were said there.",
    "documentation": "<nav class=sidebar>API</nav><pre><code>install --level {n}</code></pre><p>Parameters",
}


def page(kind: str, n: int) -> Criteria:
    body = PAGES[kind].replace("{n}", f"n{chr(97 + n % 26)}").encode()
    return criteria(read(body, "text/html", wanted=WANTED), f"http://h{n}.example/{kind}s/{chr(97 + n % 26)}")


@pytest.fixture(scope="module")
def trained():  # type: ignore[no-untyped-def]
    kinds = [kind for kind in PAGES for _ in range(12)]
    found = [page(kind, n) for n, kind in enumerate(kinds)]
    pages = examples(found, kinds, [values(each.said) for each in found], [f"h{n}" for n in range(len(kinds))])
    return Model(*train(pages, 0)), pages


def test_a_model_tells_pages_that_it_has_not_seen(trained) -> None:  # type: ignore[no-untyped-def]
    model, _ = trained
    for kind in PAGES:
        said = model.probabilities(page(kind, 1000))
        assert said.sum() == pytest.approx(1.0)
        assert KINDS[int(said.argmax())] == kind
        assert said.max() > 0.5


def test_the_same_pages_and_seed_give_the_same_bytes(trained) -> None:  # type: ignore[no-untyped-def]
    model, pages = trained
    assert Model(*train(pages, 0)).to_bytes() == model.to_bytes()
    assert Model(*train(pages, 1)).to_bytes() != model.to_bytes()


def test_a_model_that_was_kept_says_the_same(trained) -> None:  # type: ignore[no-untyped-def]
    model, _ = trained
    again = Model.from_bytes(model.to_bytes())
    one = page("forum", 77)
    assert again.probabilities(one) == pytest.approx(model.probabilities(one), abs=1e-6)
    with pytest.raises(InputError, match="cannot be read"):
        Model.from_bytes(b"nothing")


def test_one_page_and_many_are_said_the_same_of(trained) -> None:  # type: ignore[no-untyped-def]
    model, pages = trained
    together = logits_of(model.network, pages)[5]
    assert model.network.logits(page("product", 5)) == pytest.approx(together, abs=1e-4)


def test_the_shipped_model_is_small_and_knows_the_kinds() -> None:
    model = shipped()
    assert len(model.to_bytes()) <= MAX_BYTES
    found = model.probabilities(page("product", 3))
    assert found.shape == (len(KINDS),)
    assert KINDS[int(found.argmax())] in ("product", "collection")


@given(st.lists(st.integers(0, 2**64 - 1), max_size=50), st.data())
def test_each_group_of_words_has_the_same_length_however_many_there_are(marks: list[int], data: st.DataObject) -> None:
    groups = data.draw(st.lists(st.integers(0, len(BITS) - 1), min_size=len(marks), max_size=len(marks)))
    found = Criteria(np.array(marks, np.uint64), np.array(groups, np.int64), np.zeros(1, np.float32), Said())
    taken, counts = places(found)
    assert counts.sum() == len(marks)
    given_in = inputs(taken, counts, np.ones(PLACES, np.float32))
    assert float((given_in**2).sum()) == pytest.approx(sum(WEIGHTS[group] for group in set(groups)), rel=1e-4)


def test_silence_counts_only_where_a_page_could_speak() -> None:
    assert values(Said(scripts=False))[0] == -1
    assert values(Said(scripts=True))[0] == STATED.index(SILENT)
    assert values(Said(types=frozenset({"nonsense"})))[0] == STATED.index(OTHER)
    assert values(Said(types=frozenset({"webpage", "newsarticle"})))[0] == STATED.index("news")


def test_tables_say_how_much_likelier_a_value_is_under_a_kind() -> None:
    found = np.array([[2, 0, 0]] * 30 + [[0, 0, 0]] * 30 + [[-1, 0, 0]] * 30)
    kinds = np.array([2] * 30 + [0] * 30 + [1] * 30)
    stated = tables(found, kinds)[0]
    assert stated[2, 2] > 0.5 > 0 > stated[2, 0]
    assert abs(stated[2, 1]) < 0.1  # a page that could not say is no evidence on what its kind says


def test_owners_are_never_split() -> None:
    owners = [f"h{n % 30}" for n in range(300)]
    part = split(owners, 5, 3)
    assert all(len({int(part[n]) for n in range(300) if owners[n] == owner}) == 1 for owner in set(owners))
    assert set(part.tolist()) == set(range(5))


def test_the_least_value_is_found_where_the_valley_is_bent() -> None:
    def valley(x: np.ndarray) -> tuple[float, np.ndarray]:
        a, b = float(x[0]), float(x[1])
        value = (1 - a) ** 2 + 100 * (b - a * a) ** 2
        return value, np.array([-2 * (1 - a) - 400 * a * (b - a * a), 200 * (b - a * a)])

    assert least(valley, np.array([-1.2, 1.0]), 200) == pytest.approx([1.0, 1.0], abs=1e-4)


def test_scores_are_those_of_the_definitions() -> None:
    said = softmax(np.log(np.array([[0.6, 0.4] + [1e-9] * 5, [0.8, 0.2] + [1e-9] * 5, [0.3, 0.7] + [1e-9] * 5])))
    found = scores(said, np.array([0, 1, 1]))
    assert found.accuracy == pytest.approx(2 / 3)
    assert found.macro_f1 == pytest.approx((2 / 3 + 2 / 3) / 2)
    assert found.log_loss == pytest.approx(-(np.log(0.6) + np.log(0.2) + np.log(0.7)) / 3, rel=1e-6)
    assert found.brier == pytest.approx((2 * 0.4**2 + 2 * 0.8**2 + 2 * 0.3**2) / 3, rel=1e-6)
    assert found.calibration == pytest.approx((0.4 + 0.8 + 0.3) / 3, rel=1e-6)
