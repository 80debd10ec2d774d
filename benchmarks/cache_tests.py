"""The public HTTP caching tests, all of them, against `afresh serve --strict`: about a minute.

python benchmarks/cache_tests.py tests.json
"""

import asyncio
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

from cache_cases import CaseOrigin, passed, play_all  # noqa: I001 (it is beside the tests)

from afresh.cli.serving import parts_for
from afresh.config import parse


async def main(suites: list[dict[str, Any]]) -> None:
    """Play them all, and say what came of it."""
    cases = [
        case | {"suite": suite["id"]} for suite in suites for case in suite["tests"] if not case.get("browser_only")
    ]
    origin = CaseOrigin()
    port = await origin.start()
    parts = parts_for(parse(f'[[serve]]\nprefix = "/"\norigin = "http://127.0.0.1:{port}"\nstrict = true\n'), None, [])
    host, listening = await parts.start("127.0.0.1", 0)
    found = await play_all(cases, host, listening)
    good = passed(cases, found)
    kinds = [case.get("kind", "required") for case in cases]
    right = Counter(case.get("kind", "required") for case in cases if case["id"] in good)
    for kind in dict.fromkeys(("required", "optimal", "check")):
        print(f"{kind}: {right[kind]} of {kinds.count(kind)}")
    for case in cases:
        if case["id"] not in good and case.get("kind", "required") != "check":
            print(f"  {case['suite']}: {case['id']}: {found[case['id']] or 'what it depends on'}")
    await parts.stop(1.0)
    await origin.stop()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Which file? python benchmarks/cache_tests.py tests.json")
    asyncio.run(main(json.loads(Path(sys.argv[1]).read_text())))
