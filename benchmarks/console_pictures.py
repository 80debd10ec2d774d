"""The pictures of docs/pictures: every page of a console that runs, wide and narrow, light and dark, by Chromium.

afresh web --pages 600 --hosts 24 --day 240s --rough --urls urls.txt
afresh add --file urls.txt
afresh run --budget 8/s --console 127.0.0.1:8600        # with [store] versions = 10
python benchmarks/console_pictures.py http://127.0.0.1:8600 docs/pictures TOKEN
"""

import io
import json
import shutil
import sys
import urllib.request
from collections import Counter
from pathlib import Path
from urllib.parse import quote

from PIL import Image
from playwright.sync_api import sync_playwright

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
FLAGS += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
SIZES = {"desktop": (1280, 900), "phone": (390, 844)}
COLOURS = 48


def changes_most(base: str) -> str:
    """The page that was found changed most often."""
    with urllib.request.urlopen(f"{base}/api/v1/changes?limit=10000", timeout=60) as answer:
        found = [json.loads(line) for line in answer]
    counts = Counter(each["url"] for each in found if each["change"] == "changed")
    return str(counts.most_common(1)[0][0])


def main(base: str, folder: Path, token: str) -> None:
    """Take them all; a page that is wider than its window is told of."""
    pages = {name: f"/{name}" for name in ("pages", "hosts", "changes", "signals", "plan", "settings", "sign-in")}
    pages |= {"page": f"/page?url={quote(changes_most(base), safe='')}", "overview": "/"}
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        for scheme in ("light", "dark"):
            for size, (width, height) in SIZES.items():
                context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
                page = context.new_page()
                page.goto(f"{base}/sign-in")
                page.fill("main input[name=token]", token)
                page.click("main button")
                for name, path in pages.items():
                    page.goto(base + path)
                    page.wait_for_timeout(500)
                    if page.evaluate("document.documentElement.scrollWidth") > width:
                        print(f"{name} is too wide on a {size}")
                    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
                    small = picture.quantize(COLOURS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
                    small.save(folder / f"{name}-{size}-{scheme}.png", optimize=True)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
