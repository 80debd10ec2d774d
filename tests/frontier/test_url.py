import pytest

from afresh.errors import InputError
from afresh.frontier import canonical, host_of


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("HTTP://Example.COM", "http://example.com/"),
        ("https://example.com:443/a/./b/../c", "https://example.com/a/c"),
        (" https://example.com/#top ", "https://example.com/"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
    ],
)
def test_one_spelling(given: str, expected: str) -> None:
    assert canonical(given) == expected
    assert canonical(expected) == expected


def test_relative_to_a_base() -> None:
    assert canonical("../b", "http://example.com/x/y/") == "http://example.com/x/b"


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "example.com",
        "ftp://example.com/",
        "javascript:alert(1)",
        "http://",
        "http://a b/",
        "http://e.com/" + "x" * 3000,
    ],
)
def test_bad_urls_are_one_clear_sentence(bad: str) -> None:
    with pytest.raises(InputError) as caught:
        canonical(bad)
    assert caught.value.hint
    assert len(caught.value.message) < 250


def test_a_secret_is_not_repeated() -> None:
    with pytest.raises(InputError) as caught:
        canonical("http://me:hunter2@example.com/")
    assert "hunter2" not in str(caught.value)


def test_host_has_its_port() -> None:
    assert host_of("http://example.com:8080/x") == "example.com:8080"
    assert host_of("http://example.com/x") == "example.com"
