from pathlib import Path

import pytest

from afresh import config
from afresh.errors import ConfigError
from afresh.types import Importance


def test_without_a_file_everything_has_its_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert config.load() == config.Config()
    assert config.load().crawl.budget == 1.0
    assert config.load().crawl.sweep == 0.02


def test_values_are_read_with_their_units() -> None:
    read = config.parse(
        '[crawl]\nbudget = "600/min"\n[fetch]\nmax_body = "1MiB"\ntimeout = "2min"\nallow_private = true\n'
    )
    assert (read.crawl.budget, read.fetch.max_body, read.fetch.timeout) == (10.0, 2**20, 120.0)
    assert read.fetch.allow_private


@pytest.mark.parametrize(("text", "share"), [("0", 0.0), ("0.1", 0.1), ("1", 1.0)])
def test_the_sweep_is_a_share(text: str, share: float) -> None:
    assert config.parse(f"[crawl]\nsweep = {text}\n").crawl.sweep == share


def test_sites_have_rules_of_their_own() -> None:
    read = config.parse('[[site]]\nhost = "a.example"\nkeep = ["main"]\n[[site]]\nhost = "b.example"\ndrop = [".x"]\n')
    assert [(site.host, site.keep, site.drop) for site in read.site] == [
        ("a.example", ("main",), ()),
        ("b.example", (), (".x",)),
    ]


def test_the_store_is_meant_from_the_folder_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "some.toml"
    file.write_text('[store]\npath = "kept.db"\n')
    assert config.load(file).store.path == tmp_path / "kept.db"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ('[crawl]\nbudgt = "1/s"', "crawl.budgt", "crawl.budget"),
        ("[crwl]", "[crwl]", "[crawl]"),
        ("crawl = 3", "crawl", ""),
        ('[crawl]\nbudget = "fast"', "'fast' is not a rate", "10/s"),
        ("[crawl]\nconcurrency = 0", "crawl.concurrency", "1 or more"),
        ("[crawl]\nconcurrency = true", "crawl.concurrency", "1 or more"),
        ("[crawl]\nsweep = 2", "crawl.sweep", "0.1"),
        ("[crawl]\nsweep = -0.1", "-0.1 is not a share", "Write 0.1"),
        ("[crawl]\nsweep = nan", "crawl.sweep", "0.1"),
        ("[crawl]\nsweep = true", "crawl.sweep", "0.1"),
        ("[crawl]\nsweep = '2 %'", "crawl.sweep", "0.1"),
        ("[politeness]\nfactor = -1", "politeness.factor", "0 or more"),
        ('[fetch]\nallow_private = "yes"', "fetch.allow_private", "without quotes"),
        ("[store]\npath = 3", "store.path", "quotes"),
        ('[fetch]\ncontact = "a\\nb"', "fetch.contact", "quotes"),
        ("[crawl", "not valid TOML", "afresh init"),
        ("[[site]]\nkeep = ['main']", "no host", "example.com"),
        ("[[site]]\nhost = 'a'\nkeep = 'main'", "site.keep", "main"),
        ("[[site]]\nhost = 'a'\nkep = []", "site.kep", "site.keep"),
        ("[[crawl]]", "[crawl]", ""),
        ("[[site]]\nhost = 'a'\nimportance = 'much'", "'much' is not an importance", "x5"),
        ("[[site]]\nhost = 'a'\nimportance = true", "not an importance", "x5"),
    ],
)
def test_a_bad_setting_is_named_with_a_hint(text: str, message: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config.parse(text)
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_a_missing_or_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.toml"):
        config.load(tmp_path / "nowhere.toml")
    (tmp_path / "odd.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="UTF-8"):
        config.load(tmp_path / "odd.toml")


def test_a_site_may_be_worth_more() -> None:
    text = "[[site]]\nhost = 'a'\nimportance = 'x5'\n[[site]]\nhost = 'b'\nimportance = 0.5\n[[site]]\nhost = 'c'\n"
    assert [site.importance for site in config.parse(text).site] == [Importance(5.0, True), Importance(0.5), None]


@pytest.mark.parametrize(
    "host", ["https://example.com/", "example.com/docs", "a.*.example.com", " ", "a b", "me@a.example"]
)
def test_rules_for_what_is_no_host_name_are_not_silently_without_effect(host: str) -> None:
    with pytest.raises(ConfigError, match="host"):
        config.parse(f'[[site]]\nhost = "{host}"\nkeep = ["main"]\n')


@pytest.mark.parametrize(
    "host", ["example.com", "Example.COM:8080", "127.0.0.1:8080", "[::1]:80", "b\u00fccher.example"]
)
def test_rules_for_host_names_are_taken(host: str) -> None:
    assert config.parse(f'[[site]]\nhost = "{host}"\n').site[0].host == host.lower()


def test_a_page_that_is_gone_is_not_asked_for_again_at_once() -> None:
    assert config.parse('[crawl]\ngone_retry = "10min"').crawl.gone_retry == 600.0
    for value in ("0s", "10ms"):
        with pytest.raises(ConfigError, match=r"crawl\.gone_retry.*less than a second"):
            config.parse(f'[crawl]\ngone_retry = "{value}"')


@pytest.mark.parametrize(
    "second",
    ['host = "B.example"', 'host = "C.example"\nprefix = "/docs/"', 'prefix = "/docs/"'],
    ids=["the same host", "the same host and prefix", "the same prefix"],
)
def test_what_is_served_is_mapped_once(second: str) -> None:
    tables = "".join(
        f'[[serve]]\n{said}\norigin = "http://10.0.0.5"\n'
        for said in ('host = "b.example"', 'prefix = "/docs"', 'host = "c.example"\nprefix = "/docs"', second)
    )
    with pytest.raises(ConfigError, match="serve"):
        config.parse(tables)
