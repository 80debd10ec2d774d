"""Reading queries, and the one form of keys and rows."""

import datetime
import decimal
import json
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.errors import ConfigError
from afresh.sources.sql import Query
from afresh.sources.sql.definitions import Database, Definitions, canonical, parts_of, redacted
from afresh.sources.sql.statement import Statement
from afresh.sources.sql.values import from_json, read, to_json, written

parameters = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**17), 10**17),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30),
    st.sampled_from(
        ["5", "-1.5", "'5", "null", "true", "1e5", "", "''", "%41", "a&b=c", "ä/?#", 0.0001234567890123456]
    ),
)


@given(st.dictionaries(st.sampled_from(["a", "b", "day", "n_1"]), parameters, max_size=4))
def test_a_key_gives_its_parameters_back(values: dict[str, object]) -> None:
    sql = "select 1 " + " ".join(f", :{name}" for name in values)
    key = Query("q", "db", sql).key(values)
    assert canonical(key) == key
    parts = parts_of(key)
    assert parts is not None
    assert parts[:2] == ("db", "q")
    assert parts[2] == values
    assert {name: type(value) for name, value in parts[2].items()} == {k: type(v) for k, v in values.items()}


@given(st.text(max_size=40))
def test_any_text_has_one_form_or_none(text: str) -> None:
    for candidate in (text, f"sql:{text}", f"sql:a/b?{text}", f"sql:a/b?x={text}"):
        once = canonical(candidate)
        assert once is None or canonical(once) == once
    shown = written(text)
    assert shown is None or read(shown) == text


@pytest.mark.parametrize(
    ("sql", "names", "ordered"),
    [
        ("select 1", (), False),
        ("SELECT * FROM t WHERE a = :a AND b > :b OR a < :a;", ("a", "b"), False),
        ("select ':no' || \":no\" || $$:no$$ || $t$ :no $t$, x::text from t where y = :yes", ("yes",), False),
        ("select E'it\\'s :no' from t -- :no\n where /* :no /* :no */ */ z = :z", ("z",), False),
        ("select a[1:2], b[f(x):y] from t where c = :c", ("c",), False),
        ("with x as (select 1 order by 1) select * from x", (), False),
        ("with x as (select 1) select * from x order\n by 1", (), True),
        ("select rank() over (order by a) from t", (), False),
        ("(select 1) union (select 2) order by 1", (), True),
        ("values (:a, :b)", ("a", "b"), False),
    ],
)
def test_what_a_query_names(sql: str, names: tuple[str, ...], ordered: bool) -> None:
    statement = Statement.of(sql)
    assert (statement.parameters, statement.ordered) == (names, ordered)
    assert statement.text("named") == sql.rstrip(";")


def test_each_style_of_a_driver() -> None:
    statement = Statement.of("select '5%' from t where a = :a and b = :b and c = :a")
    values: dict[str, object] = {"a": 1, "b": 2}
    assert statement.text("dollar") == "select '5%' from t where a = $1 and b = $2 and c = $1"
    assert statement.arguments("dollar", values) == [1, 2]
    assert statement.text("qmark") == "select '5%' from t where a = ? and b = ? and c = ?"
    assert statement.arguments("qmark", values) == [1, 2, 1]
    assert statement.text("pyformat") == "select '5%%' from t where a = %(a)s and b = %(b)s and c = %(a)s"
    assert statement.text("numeric").endswith("a = :1 and b = :2 and c = :3")


@pytest.mark.parametrize("sql", ["", "delete from t", "select 1; drop table t", "pragma x", "select '" + "x" * 20_001])
def test_what_is_no_query_is_refused(sql: str) -> None:
    with pytest.raises(ConfigError):
        Query("q", "db", sql)


cells = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.binary(max_size=20),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.datetimes(),
    st.dates(),
    st.uuids(),
)


@given(st.lists(st.tuples(cells, cells, st.integers()), max_size=8))
def test_rows_come_back_as_they_were(rows: list[tuple[object, ...]]) -> None:
    columns = [("a", "x"), ("b", "y"), ("n", "int")]
    body = to_json(columns, rows, ordered=True)
    assert from_json(body) == (columns, rows)
    assert [[type(value) for value in row] for row in from_json(body)[1]] == [[type(v) for v in row] for row in rows]
    assert to_json(columns, from_json(body)[1], ordered=True) == body


@given(st.permutations([(1, "a"), (2, "b"), (2, None), (3, "c")]))
def test_the_order_of_rows_counts_only_where_the_query_says_it(rows: list[tuple[object, ...]]) -> None:
    columns, first = [("n", "int"), ("t", "text")], [(1, "a"), (2, "b"), (2, None), (3, "c")]
    assert to_json(columns, rows, ordered=False) == to_json(columns, first, ordered=False)
    assert (to_json(columns, rows, ordered=True) == to_json(columns, first, ordered=True)) == (rows == first)


def test_results_are_json_that_others_can_read() -> None:
    rows = [(decimal.Decimal("1.50"), datetime.date(2026, 11, 17), uuid.UUID(int=1), {"k": [1, b"\x01"]})]
    kept = json.loads(to_json([("d", "numeric"), ("day", "date"), ("u", "uuid"), ("j", "jsonb")], rows, ordered=False))
    assert kept["rows"] == [["1.50", "2026-11-17", str(uuid.UUID(int=1)), {"k": [1, "01"]}]]


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hush-hush@db/shop",
        "postgresql://db/shop?user=me&password=hush-hush",
        'pymysql:{"host": "db", "password": "hush-hush"}',
        "postgresql://me:hush%2Dhush@db/shop",
    ],
)
def test_passwords_are_refused_in_definitions_and_never_shown(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError) as refused:
        Database("shop", url)
    monkeypatch.setenv("SHOP_URL", url)
    database = Database("shop", "$SHOP_URL")
    assert database.address() == url
    shown = [str(refused.value), repr(database), str(Definitions([database]).values())]
    shown += [redacted(f"cannot reach {url} with hush-hush", url)]
    assert not any("hush" in each for each in shown), shown


def test_definitions_come_back_from_a_store() -> None:
    known = Definitions([Database("shop", "$SHOP_URL", timeout=2.0)], [Query("top", "shop", "select :n")])
    other = Definitions([Database("shop", "$OTHER", settled=True)])
    for name, text in known.values().items():
        other.take(name, text)
    assert other.query("top") == known.query("top")
    assert other.databases["shop"].url == "$OTHER"  # what the settings say holds
    other.take("sql query top", "nonsense")
    with pytest.raises(ConfigError, match="top"):
        other.query("top")
