"""The source that docs/sources.md writes: its text is run, passes the battery, and keeps values."""

import asyncio
import os
import re
import time
from pathlib import Path
from typing import Any

from afresh.store import Memory
from afresh.testing import SourceWorld, check_source

PAGE = Path(__file__).parent.parent.parent / "docs" / "sources.md"


def recipe() -> dict[str, Any]:
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(compile(block, str(PAGE), "exec"), names)
    return names


def write(file: Path, text: str, nth: int = 0) -> None:
    file.write_text(text)
    os.utime(file, (time.time() + nth,) * 2)


def test_the_recipe_passes_the_battery(tmp_path: Path) -> None:
    file = tmp_path / "values.txt"

    def world() -> SourceWorld:
        write(file, "one = 1\ntwo = 2\n")
        return SourceWorld(
            recipe()["Values"](file),
            "value:one",
            "https://a.example/",
            change=lambda: write(file, "one = 3\ntwo = 2\n", 1),
            remove=lambda: write(file, "two = 2\n", 2),
            missing="value:three",
        )

    check_source(world)
    block = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert block is not None
    assert sum(bool(line.strip()) for line in block[1].splitlines()) <= 44  # about 40 lines


def test_the_recipe_keeps_values(tmp_path: Path) -> None:
    file, store = tmp_path / "values.txt", Memory()
    write(file, "one = 1\n")

    async def scene() -> None:
        keeping = asyncio.create_task(recipe()["keep"](file, store, ["one"]))
        deadline = time.monotonic() + 60
        for text in ("1", "2"):
            write(file, f"one = {text}\n", int(text))
            while (copy := store.copy("value:one")) is None or copy.body != text.encode():
                assert time.monotonic() < deadline
                assert not keeping.done(), keeping
                await asyncio.sleep(0.05)
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)

    asyncio.run(scene())
