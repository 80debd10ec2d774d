"""The files on this machine that belong to a store in PostgreSQL."""

import os
import tempfile
from hashlib import sha256
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from afresh.types import Address

SECRETS = ("password", "passwd", "sslpassword")


def own_folder() -> Path:
    """A folder of this machine that only its owner can read, the same for all of the owner's processes."""
    folder = Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()) / f"afresh-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    about = folder.lstat()
    if folder.is_symlink() or about.st_uid != os.getuid() or about.st_mode & 0o077:
        return Path(tempfile.mkdtemp(prefix="afresh-"))  # it is somebody else's: then each process has one of its own
    return folder


def place_of(address: Address) -> Path:
    """Beside this name is the runner's socket on this machine."""
    parts = urlsplit(address.secret)
    options = sorted(each for each in parse_qsl(parts.query) if each[0] not in SECRETS)
    named = f"{parts.netloc.rpartition('@')[2]}{parts.path}{options}"
    return own_folder() / f"pg-{sha256(named.encode()).hexdigest()[:16]}"
