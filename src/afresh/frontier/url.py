"""One spelling for every URL: the WHATWG serialisation, without the fragment."""

import ada_url

from afresh.errors import InputError

LONGEST = 2083  # what browsers and other crawlers take; longer ones are traps or mistakes


def canonical(url: str, base: str | None = None) -> str:
    """The canonical form of an http or https URL; InputError with the reason if it has none.

    >>> canonical("HTTP://Example.COM:80/a/../b?q=1#top")
    'http://example.com/b?q=1'
    """
    shown = url if len(url) <= 100 else url[:97] + "..."
    try:
        parsed = ada_url.URL(url.strip(), base)
    except ValueError:
        raise InputError(f"{shown!r} is not a URL.", hint="Write it whole, such as https://example.com/page.") from None
    if parsed.protocol not in ("http:", "https:"):
        raise InputError(
            f"{shown!r} is not a web address: it begins with {parsed.protocol!r}.",
            hint="Only http:// and https:// can be kept fresh.",
        )
    if parsed.username or parsed.password:
        # The sentence must not repeat the secret.
        raise InputError("A URL carries a user name or password.", hint="Remove the part before the @.")
    parsed.hash = ""
    href = str(parsed.href)
    if len(href) > LONGEST:
        raise InputError(f"{shown!r} is longer than {LONGEST} characters.", hint="Shorten it or leave it out.")
    return href


def host_of(url: str) -> str:
    """The host and port of a canonical URL: what politeness is counted by.

    >>> host_of("http://example.com:8080/a")
    'example.com:8080'
    """
    return str(ada_url.URL(url).host)
