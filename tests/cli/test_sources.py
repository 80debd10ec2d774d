"""Files and queries from the command line: added, kept fresh, shown, told of, exported and removed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import apsw
import pytest

from afresh.config import parse
from afresh.errors import ConfigError

Run = Callable[..., CompletedProcess[str]]
COMMAND = [sys.executable, "-c", "from afresh.cli import main; main()"]
SETTINGS = """
[files]
exclude = ["*.tmp"]

[[database]]
name = "shop"
url = "sqlite:shop.db"
budget = "0.5 s/s"

[[query]]
name = "newest"
database = "shop"
sql = "SELECT max(id) AS id FROM orders"

[[query]]
name = "of_shop"
database = "shop"
sql = "SELECT id, amount FROM orders WHERE shop = :shop"
keep = ["shop=1", "shop=2"]
"""


def shop(path: Path, *statements: str) -> None:
    connection = apsw.Connection(str(path))
    for statement in statements:
        connection.execute(statement)
    connection.close()


def world(folder: Path) -> Path:
    """A tree of files and a database."""
    tree = folder / "docs"
    (tree / "sub").mkdir(parents=True)
    (tree / "a.txt").write_text("one")
    (tree / "sub" / "b.txt").write_text("two")
    (tree / "left-out.tmp").write_text("x")
    (tree / "outside").symlink_to("/etc")
    shop(
        folder / "shop.db",
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, shop INTEGER, amount INTEGER)",
        "INSERT INTO orders VALUES (1, 1, 10), (2, 2, 20)",
    )
    return tree


def outcomes(lines: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in lines.splitlines():
        each = json.loads(line)
        found.setdefault(each["url"], []).append(each.get("outcome") or each["change"])
    return found


def test_files_and_queries_from_beginning_to_end(afresh: Run, tmp_path: Path) -> None:
    tree = world(tmp_path)
    (tmp_path / "afresh.toml").write_text(SETTINGS)
    assert "--recursive" in afresh("add", "./docs").stderr
    assert "There is no file" in afresh("add", "./nothing").stderr
    added = afresh("add", "docs/a.txt")
    assert (added.returncode, "./docs/a.txt" in added.stderr) == (2, True)
    assert afresh("add", "./docs", "--recursive").stdout.startswith("1 new")
    whole = [f"file://{tree}/", f"file://{tree}/a.txt", f"file://{tree}/sub/", f"file://{tree}/sub/b.txt"]
    queries = ["sql:shop/newest", "sql:shop/of_shop?shop=1", "sql:shop/of_shop?shop=2"]

    runner = subprocess.Popen([*COMMAND, "run", "--json"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        deadline = time.monotonic() + 400  # all may have to be compiled first

        def told() -> dict[str, list[str]]:
            return outcomes(afresh("changes").stdout) if (tmp_path / "afresh.db").exists() else {}

        while set(told()) != {*whole, *queries}:
            assert runner.poll() is None, runner.stderr and runner.stderr.read()
            assert time.monotonic() < deadline, told()
            time.sleep(0.2)
        shop(tmp_path / "shop.db", "INSERT INTO orders VALUES (3, 1, 30)")
        (tree / "a.txt").write_text("changed")
        (tree / "sub" / "new.txt").write_text("new")
        (tree / "sub" / "b.txt").unlink()
        (tree / "sub" / "b.txt").mkdir()
        expected = {queries[0]: "changed", queries[1]: "changed", whole[1]: "changed", whole[3]: "gone"}
        expected |= {f"file://{tree}/sub/new.txt": "new", f"file://{tree}/sub/b.txt/": "new"}
        while not all(told().get(url, [""])[-1] == word for url, word in expected.items()):
            assert time.monotonic() < deadline, told()
            time.sleep(0.2)
        status = json.loads(afresh("status", "--json").stdout)
        assert {each["purse"]: each["unit"] for each in status["purses"]} == {"files": "calls", "sql:shop": "seconds"}
        assert {each["purse"]: each["budget"] for each in status["purses"]} == {
            "files": 100.0,
            "sql:shop": pytest.approx(0.5),
        }
        assert any(each["spent"] > 0.0 for each in status["purses"])
        assert "spent in the last minute" in " ".join(afresh("status").stdout.split())
        shown = afresh("show", "sql:shop/newest").stdout
        assert "cost" in shown
        os.kill(runner.pid, signal.SIGKILL)
    finally:
        runner.kill()
        runner.communicate()
    # Nothing that was told is lost by that.
    after = told()
    assert all(after[url][-1] == word for url, word in expected.items())
    assert json.loads(afresh("show", "sql:shop/newest", "--body").stdout)["rows"] == [[3]]
    assert afresh("show", "docs/a.txt", "--body").stdout == "changed"  # a kept path needs no ./
    assert afresh("show", "./docs/a.txt", "--body").stdout == "changed"

    assert "Wrote 9 copies" in afresh("export", "--warc", "all.warc").stdout
    records = (tmp_path / "all.warc").read_bytes()
    assert records.count(b"WARC-Type: resource") == 9
    assert b"HTTP/1.1" not in records
    assert "Wrote 9 copies" in afresh("export", "--jsonl", "all.jsonl").stdout
    listed = json.loads(afresh("query", "list", "--json").stdout)
    assert [(each["query"], each["results"]) for each in listed["queries"]] == [("newest", 1), ("of_shop", 2)]
    refused = afresh("query", "remove", "newest")
    assert (refused.returncode, "settings" in refused.stderr) == (2, True)
    assert afresh("remove", "./docs").stdout == "6 pages removed.\n"
    left = json.loads(afresh("status", "--json").stdout)
    assert left["pages"] == 3


def test_queries_are_added_and_removed(afresh: Run, tmp_path: Path) -> None:
    world(tmp_path)
    one = afresh("query", "add", "newest", "--database", "sqlite:shop.db", "--sql", "SELECT max(id) FROM orders")
    assert one.stdout == "Query newest of shop added, 1 result to keep.\n"
    two = afresh("query", "add", "of_shop", "-d", "shop", "--sql", "SELECT * FROM orders WHERE shop = :shop")
    assert "Its parameters: shop; results are kept as they are asked for." in two.stdout
    more = ("query", "add", "of_shop", "-d", "shop", "--sql", "SELECT id FROM orders WHERE shop = :shop")
    assert "changed, 1 result to keep" in afresh(*more, "--keep", "shop=7").stdout
    for bad, word in {
        ("query", "add", "x", "-d", "nowhere", "--sql", "SELECT 1"): "There is no database nowhere",
        ("query", "add", "x", "-d", "shop", "--sql", "DELETE FROM orders"): "",
        (*more, "--keep", "day=7"): "needs: ",
        ("query", "add", "x", "-d", "postgresql://me:hush@db/shop", "--sql", "SELECT 1"): "password",
        ("query", "remove", "nothing"): "There is no query",
        ("query", "suggest", "-d", "shop"): "no PostgreSQL",
        ("add", "sql:shop"): "no key of a query",
    }.items():
        refused = afresh(*bad)
        assert refused.returncode == 2, bad
        assert word in refused.stderr
        assert "hush" not in refused.stderr
        assert "hint" in refused.stderr
    again = afresh("query", "add", "newest", "-d", "sqlite:./shop.db", "--sql", "SELECT max(id) FROM orders")
    assert again.stdout == "Query newest of shop changed, 1 result to keep.\n"  # the same database
    assert afresh("query", "list").stdout.count("of shop") == 2
    assert "removed" in afresh("query", "remove", "of_shop").stdout
    assert json.loads(afresh("status", "--json").stdout)["pages"] == 1
    wrong = afresh("query", "add", "wrong", "-d", "shop", "--sql", "SELECT nosuch FROM orders WHERE shop = :shop")
    assert (wrong.returncode, "no such column: nosuch" in wrong.stderr) == (0, True)
    assert "removed" in afresh("query", "remove", "wrong").stdout
    assert "database shop" in afresh("query", "list").stdout
    assert "removed" in afresh("query", "remove", "newest").stdout
    assert "database shop" not in afresh("query", "list").stdout  # with its last query


def test_what_is_kept_is_found_as_it_is_written(afresh: Run, tmp_path: Path) -> None:
    tree = world(tmp_path)
    assert "1 new" in afresh("add", "docs", "--recursive").stdout
    assert "1 new" in afresh("add", "./docs/a.txt").stdout
    assert "There is no folder nothing" in afresh("add", "nothing", "--recursive").stderr
    (tree / "a.txt").rename(tree / "moved.txt")
    (tree / "a.txt").symlink_to("/etc/hostname")
    for text in ("docs/a.txt", "./docs/a.txt", str(tree / "a.txt"), f"file://{tree}/a.txt"):
        assert json.loads(afresh("show", text, "--json").stdout)["url"] == f"file://{tree}/a.txt"
    assert json.loads(afresh("show", "docs", "--json").stdout)["url"] == f"file://{tree}/"
    assert "1 page" in afresh("remove", "docs/a.txt").stdout


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('[[database]]\nname = "shop"', "has no url"),
        ('[[database]]\nname = "a b"\nurl = "sqlite:x"', "no name"),
        ('[[query]]\nname = "q"\nsql = "SELECT 1"', "has no database"),
        ('[[database]]\nname = "a"\nurl = "x"\n[[database]]\nname = "a"\nurl = "y"', "called a"),
        ('[files]\nbudget = "5 apples/s"', "budget"),
        ('[files]\nexclude = "x"', "list of names"),
        ('[crawl]\nbudget = "5 MB/s"\nbudget_hours = ["08:00-10:00 = 5/s"]', "another unit"),
    ],
)
def test_settings_that_make_no_sense_are_refused(text: str, word: str) -> None:
    with pytest.raises(ConfigError, match=word) as refused:
        parse(text)
    assert refused.value.hint
