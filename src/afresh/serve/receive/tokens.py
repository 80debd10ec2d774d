"""Tokens: who may send or ask what. Only their hashes are kept, in a file that nobody else can read."""

import os
import re
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from stat import S_IMODE

from afresh.errors import ConfigError, InputError

SCOPES = ("signal", "read", "act")
# What a token of each scope may do besides.
_INCLUDES = {"signal": {"signal"}, "read": {"read"}, "act": {"signal", "read", "act"}}
MAX_TOKENS = 1_000
MAX_FILE_BYTES = 1 << 18
LOOK_SECONDS = 1.0  # between two looks at the file
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")
_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Token:
    """One token as it is kept: everything but the token."""

    name: str
    scope: str
    digest: str
    created: float

    def may(self, scope: str) -> bool:
        """Whether it is good for this."""
        return scope in _INCLUDES[self.scope]


class Tokens:
    """The tokens in a file; it is read again after it has changed, so that a token may come or go at any time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp: tuple[int, int, int] | None = None
        self._by_digest: dict[str, Token] = {}
        self._looked = -1e9

    def find(self, presented: str) -> Token | None:
        """The token that somebody presents; None: there is no such token."""
        now = time.monotonic()
        if now - self._looked >= LOOK_SECONDS:
            self._looked = now
            self._refresh()
        # A digest is looked up, not the token: how long that takes says nothing about any token.
        return self._by_digest.get(_digest(presented))

    def _refresh(self) -> None:
        try:
            found = self.path.stat()
            stamp = (found.st_mtime_ns, found.st_ino, found.st_size)
            if stamp != self._stamp:
                self._by_digest = {token.digest: token for token in listed(self.path)}
                self._stamp = stamp
        except (OSError, ConfigError):  # whoever asks is refused, until the file is as it should be
            self._by_digest, self._stamp = {}, None


def listed(path: Path) -> list[Token]:
    """All tokens of a file; none if there is no file. ConfigError if it cannot be used."""
    try:
        if S_IMODE(path.stat().st_mode) & 0o077:
            raise ConfigError(f"Others can read the tokens in {path}.", hint=f"Run chmod 600 {path}.")
        with path.open(encoding="ascii") as file:
            text = file.read(MAX_FILE_BYTES)
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not plain text"
        raise ConfigError(
            f"The tokens in {path} cannot be read: {why}.", hint="Make new ones: afresh token new"
        ) from None
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            name, scope, digest, created = line.split()
            if not (_NAME.fullmatch(name) and scope in SCOPES and _HASH.fullmatch(digest)):
                raise ValueError(line)
            found.append(Token(name, scope, digest, float(created)))
        except ValueError:
            raise ConfigError(
                f"Line {number} of {path} is no token.", hint="Lines are written by `afresh token new`."
            ) from None
    return found


def new(path: Path, name: str, scope: str) -> str:
    """Make a token and keep its hash; the token itself, which is told once."""
    if not _NAME.fullmatch(name):
        raise InputError(f"{name[:80]!r} is no name of a token.", hint="Use up to 40 letters, digits, . _ and -.")
    if scope not in SCOPES:
        raise InputError(f"There is no scope {scope[:40]!r}.", hint=f"Write {', '.join(SCOPES[:-1])} or {SCOPES[-1]}.")
    known = listed(path)
    if any(token.name == name for token in known):
        raise InputError(
            f"There is a token {name} already.", hint=f"Choose another name, or: afresh token revoke {name}"
        )
    if len(known) >= MAX_TOKENS:
        raise InputError(f"There are {MAX_TOKENS:,} tokens already.", hint="Revoke some that are not used.")
    token = f"afresh_{secrets.token_urlsafe(32)}"
    _write(path, [*known, Token(name, scope, _digest(token), float(round(time.time())))])
    return token


def revoke(path: Path, name: str) -> None:
    """Make a token useless."""
    known = listed(path)
    left = [token for token in known if token.name != name]
    if len(left) == len(known):
        raise InputError(f"There is no token {name[:80]!r}.", hint="`afresh token list` names them.")
    _write(path, left)


def _write(path: Path, tokens: list[Token]) -> None:
    """Replace the file, whole or not at all."""
    text = "# Tokens of afresh: name, scope, SHA-256 of the token, when it was made.\n"
    text += "".join(f"{each.name} {each.scope} {each.digest} {each.created:.0f}\n" for each in tokens)
    beside = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(file, "w", encoding="ascii") as opened:
            opened.write(text)
            opened.flush()
            os.fsync(opened.fileno())
        beside.replace(path)
    except OSError as error:
        with suppress(OSError):
            beside.unlink()
        raise ConfigError(f"{path} cannot be written: {error.strerror}.", hint="Set receive.tokens.") from None


def _digest(token: str) -> str:
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
