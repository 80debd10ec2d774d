"""The serving cache under load from other processes: requests per CPU-second, waits, idle connections, slow readers.

    python benchmarks/bench_serve.py [--seconds 5] [--idle 10000]

Beside it nginx with its proxy cache, if it is installed, otherwise uvicorn with a constant answer, if that is. CPU time
is that of the server's processes alone. The last figures are taken while `afresh run` crawls a synthetic web beside it.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BODY = b"x" * 10_000
COMMAND = [sys.executable, "-c", "from afresh.cli import main; main()"]
CONNECTIONS = 32
PAGES = 100
TAKEN: set[int] = set()


def free_port() -> int:
    """Below those that connections come from: to one of them a client could connect to itself."""
    for port in range(20000 + os.getpid() % 5000, 32000):
        with socket.socket() as made:
            try:
                made.bind(("127.0.0.1", port))
            except OSError:
                continue
            if port not in TAKEN:
                TAKEN.add(port)
                return port
    sys.exit("No port is free.")


def origin(port: int) -> None:
    """Answers everything with the same 10 kB."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nCache-Control: max-age=3600\r\n"
    head += b'ETag: "a"\r\nContent-Length: %d\r\n\r\n' % len(BODY)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(head + BODY)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def main() -> None:
        async with await asyncio.start_server(serve, "127.0.0.1", port):
            await asyncio.Event().wait()

    asyncio.run(main())


class _Client(asyncio.Protocol):
    """Asks again as soon as it is answered, or when it is told to."""

    def __init__(self, requests: list[bytes], paced: bool, waits: list[float]) -> None:
        self.requests, self.paced, self.waits = requests, paced, waits
        self.nth = self.answered = self.missing = 0
        self.asked = 0.0
        self.busy = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        if not self.paced:
            self.ask()

    def ask(self) -> None:
        if self.busy:
            return
        self.busy, self.asked = True, time.perf_counter()
        self.transport.write(self.requests[self.nth % len(self.requests)])
        self.nth += 1

    def data_received(self, data: bytes) -> None:
        if not self.missing:
            head, _, rest = data.partition(b"\r\n\r\n")
            place = head.lower().find(b"content-length:")
            length = int(head[place + 15 :].split(b"\r\n", 1)[0]) if place >= 0 and b" 304 " not in head[:14] else 0
            self.missing = length - len(rest)
        else:
            self.missing -= len(data)
        if self.missing <= 0:
            self.missing, self.busy = 0, False
            self.answered += 1
            self.waits.append(time.perf_counter() - self.asked)
            if not self.paced:
                self.ask()


def load(port: int, seconds: float, extra: bytes, rate: float, results: Any) -> None:
    """(answers, 99th percentile of waits)."""

    async def main() -> tuple[int, float]:
        loop = asyncio.get_running_loop()
        lines = b"Host: a.example\r\n" + extra + b"\r\n"
        requests = [b"GET /page/%d HTTP/1.1\r\n%b" % (nth, lines) for nth in range(PAGES)]
        waits: list[float] = []
        clients = [
            (await loop.create_connection(lambda: _Client(requests, rate > 0, waits), "127.0.0.1", port))[1]
            for _ in range(CONNECTIONS)
        ]
        began = loop.time()
        if rate:
            for nth in range(int(rate * seconds)):
                wait = began + nth / rate - loop.time()
                if wait > 0:
                    await asyncio.sleep(wait)
                clients[nth % CONNECTIONS].ask()
        else:
            await asyncio.sleep(seconds)
        answers = sum(client.answered for client in clients)
        for client in clients:
            client.transport.abort()
        return answers, sorted(waits)[int(len(waits) * 0.99)] if waits else 0.0

    results.put(asyncio.run(main()))


def drive(port: int, seconds: float, extra: bytes = b"", rate: float = 0.0) -> tuple[int, float]:
    """Load a server from another process: (answers, 99th percentile of waits)."""
    results: Any = multiprocessing.Queue()
    process = multiprocessing.Process(target=load, args=(port, seconds, extra, rate, results))
    process.start()
    process.join(seconds + 60)
    if process.exitcode != 0:
        sys.exit(f"The load on port {port} failed.")
    return results.get()  # type: ignore[no-any-return]


def family(pid: int) -> list[int]:
    """A process and its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(each for child in children for each in family(int(child)))]


def cpu_of(pid: int) -> float:
    """Processor time of a process and its children."""
    ticks = 0
    for each in family(pid):
        fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def memory_of(pid: int) -> int:
    """Resident memory of a process and its children."""
    return sum(int(Path(f"/proc/{each}/statm").read_text().split()[1]) for each in family(pid)) * resource.getpagesize()


@contextmanager
def started(command: list[str], port: int, **more: Any) -> Iterator[int]:
    """A server that listens, until the end."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more)
    try:
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.1)
        else:
            sys.exit(f"{command[0]} does not listen.")
        yield process.pid
    finally:
        process.terminate()
        process.wait(20)


def nginx_settings(folder: Path, port: int, behind: int) -> Path:
    """nginx as a cache, otherwise plain."""
    file = folder / "nginx.conf"
    user = "user root; " if os.geteuid() == 0 else ""
    folders = "".join(f"{name}_temp_path {folder}/{name};\n" for name in ("proxy", "fastcgi", "uwsgi", "scgi"))
    file.write_text(
        f"{user}daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;\n"
        f"events {{ worker_connections 20000; }}\nhttp {{ access_log off; keepalive_requests 1000000000;\n"
        f"proxy_cache_path {folder}/cache keys_zone=z:10m; client_body_temp_path {folder}/body;\n{folders}"
        f"server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://127.0.0.1:{behind};\n"
        "proxy_cache z; proxy_cache_valid 200 1h; } } }\n"
    )
    return file


def measured(name: str, port: int, pid: int, seconds: float, extra: bytes) -> float:
    """Requests per CPU-second, best of three."""
    drive(port, 0.5)
    best = 0.0
    for _ in range(3):
        before = cpu_of(pid)
        answers, _ = drive(port, seconds / 3, extra)
        best = max(best, answers / max(cpu_of(pid) - before, 0.01))
    print(f"  {name:<28}{best / 1000:8.1f} thousand requests per CPU-second", flush=True)
    return best


def idle(port: int, pid: int, count: int) -> None:
    """What connections cost that wait for their next request."""
    before = memory_of(pid)
    kept = []
    for _ in range(count):
        made = socket.create_connection(("127.0.0.1", port))
        made.sendall(b"GET /page/1 HTTP/1.1\r\nHost: a.example\r\nIf-None-Match: *\r\n\r\n")
        made.recv(65536)
        kept.append(made)
    after = memory_of(pid)
    print(
        f"  {count:,} idle connections: {(after - before) / 1e6:.1f} MB, {(after - before) / count / 1e3:.2f} kB each"
    )
    for made in kept:
        made.close()


def slow(port: int, pid: int, count: int) -> None:
    """Readers who do not read."""
    before = memory_of(pid)
    kept = []
    for nth in range(count):
        made = socket.socket()
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        made.connect(("127.0.0.1", port))
        made.sendall(b"GET /page/%d HTTP/1.1\r\nHost: a.example\r\n\r\n" % (nth % PAGES) * 8)
        kept.append(made)
    time.sleep(1.0)
    _, p99 = drive(port, 1.0, rate=500.0)
    used = (memory_of(pid) - before) / count / 1e3
    print(f"  {count:,} readers who do not read: {used:.0f} kB each; p99 of the others {1000 * p99:.2f} ms")
    for made in kept:
        made.close()


@contextmanager
def crawler(folder: Path) -> Iterator[None]:
    """`afresh run` on a synthetic web."""
    port = free_port()
    (folder / "afresh.toml").write_text(
        '[fetch]\nallow_private = true\n[politeness]\nfactor = 0\nshortest_gap = "0s"\n[crawl]\nbudget = "100/s"\n'
    )
    with started([*COMMAND, "web", "--pages", "500", "--hosts", "20", "--port", str(port)], port, cwd=folder):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/_site/urls") as answer:
            urls = json.load(answer)
        (folder / "urls.txt").write_text("\n".join(urls) + "\n")
        subprocess.run([*COMMAND, "add", "--file", "urls.txt"], cwd=folder, check=True, capture_output=True)
        process = subprocess.Popen([*COMMAND, "run"], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            time.sleep(20)
            yield
        finally:
            process.terminate()
            process.wait(30)


def main() -> None:
    """All figures."""
    options = argparse.ArgumentParser()
    options.add_argument("--seconds", type=float, default=5.0)
    options.add_argument("--idle", type=int, default=10_000)
    given = options.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    behind, port, other = free_port(), free_port(), free_port()
    source = multiprocessing.Process(target=origin, args=(behind,), daemon=True)
    source.start()
    ours = [*COMMAND, "serve", "--listen", f"127.0.0.1:{port}", "--origin", f"http://127.0.0.1:{behind}", "--strict"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with started(ours, port, cwd=folder) as pid:
            kinds: dict[str, Callable[[], bytes]] = {"200": lambda: b"", "304": lambda: b'If-None-Match: "a"\r\n'}
            nginx = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
            print("Hits of a 10 kB copy:")
            if nginx:
                settings = nginx_settings(folder, other, behind)
                with started([nginx, "-c", str(settings), "-p", str(folder)], other) as theirs:
                    for kind, extra in kinds.items():
                        a = measured(f"afresh, {kind}", port, pid, given.seconds, extra())
                        b = measured(f"nginx, {kind}", other, theirs, given.seconds, extra())
                        print(f"  {kind}: {a / b:.2f} × nginx", flush=True)
            else:
                for kind, extra in kinds.items():
                    measured(f"afresh, {kind}", port, pid, given.seconds, extra())
                print("  nginx is not installed: nothing to compare with")
            answers, _ = drive(port, 2.0)
            half = answers / 2.0 / 2
            _, p99 = drive(port, given.seconds, rate=half)
            print(f"Half load, {half:,.0f} requests/s: p99 {1000 * p99:.2f} ms")
            with crawler(folder):
                _, p99 = drive(port, given.seconds, rate=half)
                print(f"  the same while afresh run crawls 100 pages/s beside it: p99 {1000 * p99:.2f} ms", flush=True)
            slow(port, pid, 200)
            idle(port, pid, given.idle)
    source.terminate()


if __name__ == "__main__":
    main()
