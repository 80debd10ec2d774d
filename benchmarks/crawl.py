"""The whole crawler beside Scrapy: pages per CPU-second of the crawling process, on one site, in one run.

    python benchmarks/crawl.py [--root FOLDER] [--scrapy PYTHON] [--rounds N]

Both crawl the same documentation, served by nginx on loopback, and do the same work: obey robots.txt, fetch, extract
links, drop duplicates, compress bodies, store them in SQLite. afresh also schedules, compares, estimates and keeps
history. Then afresh refreshes what it has.

The documentation is Debian's PostgreSQL manual or Python's (apt-get install postgresql-doc-15 python3-doc) or any
folder of HTML. Without nginx, Python's own file server stands in, which is slower but is another process. Scrapy is
taken from this environment (pip install 'afresh[bench]') or from the interpreter that --scrapy names.
"""

import argparse
import json
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SIDES = Path(__file__).parent / "sides"
ROOTS = ("/usr/share/doc/postgresql-doc-15/html", "/usr/share/doc/python3.11/html")
NGINX = """
worker_processes 1; daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 256; }}
http {{
  include /etc/nginx/mime.types; access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server {{ listen 127.0.0.1:{port}; root {root}; index index.html; }}
}}
"""


def free_port() -> int:
    """A port that nobody uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def server(root: Path, folder: Path) -> Iterator[tuple[str, str]]:
    """The address of a file server in a process of its own, and what it is."""
    port, nginx = free_port(), shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
    if nginx:
        (folder / "nginx.conf").write_text(NGINX.format(folder=folder, port=port, root=root))
        command = [nginx, "-c", str(folder / "nginx.conf"), "-p", str(folder)]
    else:
        command = [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1", "--directory", str(root)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(port)
        yield f"http://127.0.0.1:{port}/", "nginx" if nginx else "Python's file server (nginx is not installed)"
    finally:
        process.terminate()
        process.wait()


def wait_for(port: int) -> None:
    """Until somebody listens."""
    for _ in range(100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise SystemExit("The file server does not start.")


def run(side: str, python: str, seed: str) -> dict[str, dict[str, float]] | None:
    """One crawl in a process of its own; None if that is not installed."""
    with tempfile.TemporaryDirectory() as folder:
        command = [python, str(SIDES / f"{side}_side.py"), seed, folder]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        if side == "scrapy" and "No module named" in done.stderr:
            return None
        raise SystemExit(f"{side} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def main() -> None:
    """Measure in turns, print the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, help="a folder of HTML with an index.html")
    parser.add_argument("--scrapy", default=sys.executable, help="a Python that has Scrapy and zstandard")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    roots = [options.root] if options.root else [Path(root) for root in ROOTS if Path(root, "index.html").exists()]
    if not roots:
        print("No documentation to serve: apt-get install postgresql-doc-15, or name a folder with --root.")
    for root in roots:
        measure(root, options.scrapy, options.rounds)


def measure(root: Path, scrapy: str, rounds: int) -> None:
    """Both sides on one folder."""
    sizes = [file.stat().st_size for file in root.rglob("*.html")]
    with tempfile.TemporaryDirectory() as folder, server(root, Path(folder)) as (seed, kind):
        print(f"{root}: {len(sizes)} pages of {sum(sizes) / len(sizes) / 1000:.0f} kB, served by {kind}")
        ours, theirs = [], []
        for _ in range(rounds):
            ours.append(run("afresh", sys.executable, seed))
            theirs.append(run("scrapy", scrapy, seed))
    speeds = [each["crawl"]["pages"] / each["crawl"]["cpu"] for each in ours if each]
    line("afresh, first crawl", ours[-1]["crawl"], speeds)
    line("afresh, refresh", ours[-1]["refresh"], [each["refresh"]["fetches"] / each["refresh"]["cpu"] for each in ours])
    refresh = ours[-1]["refresh"]
    print(f"  answered 304 on the refresh: {refresh['not_modified'] / refresh['fetches']:.1%}")
    if None in theirs:
        print("  Scrapy is not installed here: pip install 'afresh[bench]', or name a Python that has it: --scrapy.")
        return
    others = [each["crawl"]["pages"] / each["crawl"]["cpu"] for each in theirs]
    line(f"Scrapy {theirs[-1]['version']}, first crawl", theirs[-1]["crawl"], others)
    ratios = [mine / its for mine, its in zip(speeds, others, strict=True)]
    print(f"  afresh / Scrapy, first crawl: {statistics.median(ratios):.2f}x (wanted: 8x)")


def line(name: str, cost: dict[str, float], speeds: list[float]) -> None:
    """One line of the table."""
    middle, low, high = statistics.median(speeds), min(speeds), max(speeds)
    kind = "pages" if "first" in name else "fetches"  # a first crawl may look twice at a page, which counts once
    print(f"  {name:28} {int(cost[kind]):6} {kind}, {middle:6.0f} per CPU-second ({low:.0f} to {high:.0f})")


if __name__ == "__main__":
    main()
