"""Signals that come in through `POST /signal` while a crawler runs: how many a second, durable, and at which cost.

    python benchmarks/bench_signals.py                       # 2,000 pages, batches of 100, 20 seconds

The crawler is `afresh run` on a synthetic web, a process of its own; the sender is this process. Every answer says that
its batch is stored. The last lines say what the runner took in meanwhile, and how the crawl went on.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from afresh.store import Sqlite

COMMAND = [sys.executable, "-c", "from afresh.cli import main; main()"]
SETTINGS = '[fetch]\nallow_private = true\n[receive]\nrate = "1000000/s"\n[store]\nmax_inbox = "256MiB"\n'


async def send(port: int, token: str, urls: list[str], batch: int, seconds: float, lanes: int) -> tuple[int, int]:
    """Send batches over so many connections; (signals acknowledged, signals refused)."""
    sent = refused = 0
    end = time.monotonic() + seconds

    async def one(nth: int) -> None:
        nonlocal sent, refused
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        place = nth * batch
        while time.monotonic() < end:
            some = [urls[(place + each) % len(urls)] for each in range(batch)]
            place += lanes * batch
            body = json.dumps(some).encode()
            head = f"POST /signal HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(int(length.partition(b":")[2]))
            good = answer.startswith(b"HTTP/1.1 202")
            sent += batch * good
            refused += batch * (not good)
        writer.close()

    await asyncio.gather(*(one(nth) for nth in range(lanes)))
    return sent, refused


def cpu_seconds(process: int) -> float:
    """CPU time that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=2_000)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--lanes", type=int, default=32, help="connections")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--budget", default="50/s")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "afresh.toml").write_text(SETTINGS)
        web = subprocess.Popen(
            [*COMMAND, "web", "--pages", str(options.pages), "--hosts", "100", "--port", "8741", "--urls", "urls.txt"],
            cwd=root,
            stdout=subprocess.DEVNULL,
        )
        runner = None
        try:
            while not (root / "urls.txt").exists():
                time.sleep(0.2)
            time.sleep(1.0)
            subprocess.run([*COMMAND, "add", "--file", "urls.txt"], cwd=root, check=True, capture_output=True)
            token = subprocess.run(
                [*COMMAND, "token", "new", "bench"], cwd=root, check=True, capture_output=True, text=True
            ).stdout.strip()
            urls = (root / "urls.txt").read_text().split()
            runner = subprocess.Popen(
                [*COMMAND, "run", "--budget", options.budget, "--receive", "127.0.0.1:8742"],
                cwd=root,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            with Sqlite(root / "afresh.db", create=False) as store:
                while store.totals().copies < len(urls) // 2:
                    time.sleep(0.5)
                before, cpu, began = store.totals(), cpu_seconds(runner.pid), time.monotonic()
                own = time.process_time()
                sent, refused = asyncio.run(send(8742, token, urls, options.batch, options.seconds, options.lanes))
                took = time.monotonic() - began
                after, used, own = store.totals(), cpu_seconds(runner.pid) - cpu, time.process_time() - own
                size, each = f"batches of {options.batch}", 1e6 * used / max(sent, 1)
                print(f"{sent / took:,.0f} signals a second acknowledged, in {size}; {refused:,} refused")
                print(f"runner: {used / took:.2f} of a core, {each:.0f} us a signal; sender {own / took:.2f}")
                print(f"crawls meanwhile: {(after.crawls - before.crawls) / took:.1f}/s of {options.budget}")
                left = after.inbox_entries, after.inbox_bytes / 1e6
                print(f"waiting in the inbox at the end: {left[0]:,} entries, {left[1]:.1f} MB")
                began = time.monotonic()
                while store.totals().inbox_entries:
                    time.sleep(0.2)
                late = time.monotonic() - began
                print(f"all taken in {late:.1f} s later: {sent / (late + took):,.0f} a second")
        finally:
            for process in (runner, web):
                if process is not None:
                    process.kill()
                    process.wait()


if __name__ == "__main__":
    main()
