"""What hostile hosts cost ordinary ones: a live crawl of 15 ordinary hosts, alone and beside more than 50 behaviours.

    python benchmarks/hostile.py                        # a minute each, all behaviours but `domains`
    python benchmarks/hostile.py --seconds 10 --evils names,gzip_bomb

`domains` offers new domains without end. Each is a site of its own with an equal claim to the budget, so it takes what
it is due, and not time: `--evils domains` or `--evils all` shows how much.

Server and crawler are processes of their own, on loopback. Printed are the ordinary hosts' crawls a minute, the
crawler's peak memory with the bound that follows from its settings, its processor time, the longest time that its event
loop was held up, and what came of each behaviour. The short form is tests/daemon/test_hostile_run.py.
"""

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

from hostile_behaviours import EVILS, READING
from hostile_run import Result, bound, crawl, hostile_server


def main() -> None:
    """Run both crawls and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="of each crawl")
    parser.add_argument("--body", type=int, default=4 << 20, help="fetch.max_body, in bytes")
    parser.add_argument("--evils", default="", help="behaviours, with commas between; fetching and reading name many")
    options = parser.parse_args()
    groups = {
        "": [name for name in EVILS if name != "domains"],
        "all": list(EVILS),
        "reading": sorted(READING),
        "fetching": [name for name in EVILS if name not in READING],
    }
    evils = groups.get(options.evils) or options.evils.split(",")
    if unknown := set(evils) - set(EVILS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known are {', '.join(EVILS)}")
    with hostile_server() as port, tempfile.TemporaryDirectory() as folder:
        alone = crawl(port, options.seconds, evils=[], body=options.body, folder=Path(folder))
        among = crawl(port, options.seconds, evils=evils, body=options.body, folder=Path(folder))
    print(f"{'':28}{'alone':>12}{f'beside {len(evils)}':>14}")
    print(f"{'ordinary crawls a minute':28}{alone.per_minute:12,.0f}{among.per_minute:14,.0f}", end="")
    print(f"   {among.per_minute / max(alone.per_minute, 1e-9):.1%}")
    print(f"{'peak memory, MB':28}{alone.peak / 1e6:12,.0f}{among.peak / 1e6:14,.0f}", end="")
    print(f"   {(among.peak - alone.peak) / 1e6:+,.0f}, bound {bound(options.body) / 1e6:,.0f}")
    print(f"{'processor seconds a second':28}{alone.cpu:12.2f}{among.cpu:14.2f}")
    print(f"{'event loop held up, s':28}{alone.lag:12.2f}{among.lag:14.2f}")
    print(f"{'tracebacks':28}{alone.said.count('Traceback'):12}{among.said.count('Traceback'):14}\n")
    print_outcomes(among, evils)


def print_outcomes(among: Result, evils: list[str]) -> None:
    """What came of each behaviour; new names of one domain are counted together."""
    found: dict[str, dict[str, int]] = {}
    for host, outcomes in among.evils.items():
        name = host.replace("-", "_") if host.replace("-", "_") in EVILS else "names"
        for outcome, count in outcomes.items():
            found.setdefault(name, {})[outcome] = found.setdefault(name, {}).get(outcome, 0) + count
    for name in evils:
        said = ", ".join(f"{outcome} {count}" for outcome, count in found.get(name, {}).items())
        print(f"{name:24}{said or 'no crawl: ' + ('robots.txt' if 'robots' in name else 'under way')}")


if __name__ == "__main__":
    main()
