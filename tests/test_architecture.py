"""The import rules of docs/architecture.md, read from the source."""

import ast
import re
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "afresh"

NOUNS = {"types", "errors", "units", "hours", "checks"}
PURE = {"estimate", "value", "schedule", "mirror", "reading", "frontier", "detect", "kinds"}
EDGES = {"signals", "fetch", "store", "index"}

# What each unit may import of afresh besides itself.
ALLOWED: dict[str, set[str]] = {
    "types": set(),
    "errors": set(),
    "checks": {"errors"},
    "units": {"errors", "types"},
    "hours": {"errors"},
    "estimate": NOUNS | {"value"},
    "value": NOUNS,
    "schedule": NOUNS | {"value"},
    "mirror": NOUNS | {"value", "schedule"},
    "reading": NOUNS | {"value"},
    "frontier": NOUNS | {"reading"},
    "detect": NOUNS | {"reading", "value"},
    "kinds": NOUNS | {"reading"},
    "signals": NOUNS | {"reading"},
    "fetch": NOUNS,
    "store": NOUNS,
    "index": NOUNS | {"reading", "frontier", "store"},
    "notify": NOUNS | {"reading", "frontier", "detect", "fetch", "store"},
    "sources": NOUNS | PURE | EDGES,
    "engine": NOUNS | PURE,
    "daemon": NOUNS | PURE | EDGES | {"sources", "engine"},
    "sim": NOUNS | PURE | {"engine"},
    "cluster": NOUNS | PURE | EDGES | {"sources", "engine", "daemon"},
    "serve": NOUNS | PURE | EDGES | {"notify", "sources", "engine", "daemon", "sim"},
    "config": NOUNS,
    "testing": NOUNS | PURE | EDGES | {"sources", "engine", "sim"},
    "demo": NOUNS | PURE | EDGES | {"sources", "engine", "daemon", "sim"},
    "lab": NOUNS | PURE | {"signals", "engine", "sim", "serve", "index", "cluster"},
    "cli": NOUNS
    | PURE
    | EDGES
    | {"notify", "sources", "engine", "daemon", "sim", "serve", "cluster", "config", "demo", "lab"},
    "__main__": {"cli"},
}

# Pure code never touches the outside world, nor a clock, nor a global source of randomness.
PURE_UNITS = NOUNS | PURE | {"engine"}
FORBIDDEN_IN_PURE = {
    "time",
    "socket",
    "asyncio",
    "os",
    "pathlib",
    "subprocess",
    "random",
    "threading",
    "aiohttp",
    "apsw",
}
# What is compiled has to be kept somewhere; what it reckons does not depend on where.
KEEPS_COMPILED_CODE = {"value/compiled.py": {"os", "pathlib"}, "value/kept.py": {"os", "pathlib"}}
PURE_LIBRARIES = {"numpy", "numba", "llvmlite", "xxhash", "ada_url", "protego", "publicsuffixlist", "selectolax"}

# What only a source of the web, of files or of a database may know of.
OF_A_PROTOCOL = re.compile(
    r"https?\b|robots|redirect|sitemap|\bheaders?\b|status code|\b(?:30[1-8]|4[01]\d|429|50[0-4])\b|etag|cookie"
    r"|last.modified|user.agent|retry.after|\bsymlink|\binode|\bSELECT\b|sqlite3|psycopg",
    re.IGNORECASE,
)

FILES = sorted(SOURCE.rglob("*.py"))


def unit_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports_of(path: Path) -> set[str]:
    """Every module that a file imports, wherever in the file."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names.add(node.module or "")
            if node.module == "afresh":
                names |= {f"afresh.{alias.name}" for alias in node.names}
    return names


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_one_way(path: Path) -> None:
    unit = unit_of(path)
    if unit == "__init__":
        return
    assert unit in ALLOWED, f"{unit} is a new unit: give it its place in ALLOWED and in docs/architecture.md"
    used = {name.split(".")[1] for name in imports_of(path) if name.startswith("afresh.")}
    assert used - {unit} - {"__version__"} <= ALLOWED[unit], f"{path.name} reaches up"


@pytest.mark.parametrize(
    "path", [path for path in FILES if unit_of(path) in PURE_UNITS], ids=lambda path: str(path.relative_to(SOURCE))
)
def test_pure_code_stays_pure(path: Path) -> None:
    used = {name.split(".")[0] for name in imports_of(path)}
    assert not used & FORBIDDEN_IN_PURE - KEEPS_COMPILED_CODE.get(str(path.relative_to(SOURCE)), set())
    foreign = {name for name in used if name not in sys.stdlib_module_names and name != "afresh"}
    assert foreign <= PURE_LIBRARIES
    # numpy's global generator is a hidden argument too.
    assert "np.random.seed" not in path.read_text()


@pytest.mark.parametrize(
    "path", [path for path in FILES if unit_of(path) == "daemon"], ids=lambda path: str(path.relative_to(SOURCE))
)
def test_the_daemon_names_no_protocol(path: Path) -> None:
    words = OF_A_PROTOCOL.findall(path.read_text())
    assert not words, f"{path.name} knows of {', '.join(words)}: that belongs to a source"


def test_the_rules_have_no_cycle() -> None:
    done: set[str] = set()
    while len(done) < len(ALLOWED):
        free = {unit for unit, below in ALLOWED.items() if unit not in done and below - {unit} <= done}
        assert free, f"cycle among {set(ALLOWED) - done}"
        done |= free


def test_a_forbidden_import_is_seen(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text("def f():\n    from afresh import engine\n    import socket\n")
    assert {"afresh.engine", "socket"} <= imports_of(bad)
