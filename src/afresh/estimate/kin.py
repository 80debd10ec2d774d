"""Which pages are alike: the groups that a page shares its priors with, from the widest to the narrowest."""

import re

_NUMBER = re.compile(r"\d+")
_PARTS = 3  # folders that count
_BRANCH = 4  # folders whose pages may be edited together


def kin_of(url: str, host: str) -> tuple[str, ...]:
    """The host, and within it the path's pattern: its folders, with numbers as one, and the kind of file.

    >>> kin_of("https://example.com/news/2024/05/item-17.html?x=1", "example.com")
    ('example.com', 'example.com/news/#/#/*.html')
    >>> kin_of("https://example.com/", "example.com")
    ('example.com', 'example.com/*')
    """
    rest = url.split("//", 1)[-1].split("#", 1)[0].split("?", 1)[0]
    _, _, path = rest.partition("/")
    *folders, name = path.split("/")
    _, dot, ending = name.rpartition(".")
    kind = f".{ending.lower()}" if dot and ending.isalnum() and len(ending) <= 5 else ""
    pattern = "/".join([_NUMBER.sub("#", folder) for folder in folders[:_PARTS]] + [f"*{kind}"])
    return host, f"{host}/{pattern}"


def branches_of(url: str, host: str) -> tuple[str, ...]:
    """The branches of a site that a page is on: the host, and its first folders one within the other, as written.

    >>> branches_of("https://example.com/en/docs/fetch/use.html?x=1", "example.com")
    ('example.com', 'example.com/en', 'example.com/en/docs', 'example.com/en/docs/fetch')
    >>> branches_of("https://example.com/", "example.com")
    ('example.com', 'example.com/')
    """
    _, _, path = url.split("//", 1)[-1].split("#", 1)[0].split("?", 1)[0].partition("/")
    folders = path.split("/")[:-1][:_BRANCH] or [""]
    return host, *(f"{host}/{'/'.join(folders[:depth])}" for depth in range(1, len(folders) + 1))
