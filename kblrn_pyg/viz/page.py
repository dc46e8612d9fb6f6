"""Take a screenshot of the page of 'kblrn serve' in Chromium."""

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from kblrn_pyg.data.whole import write_bytes

# Everything that the page has asked for is there.
SETTLED = (
    "const main = document.getElementById('main');"
    "return main.childElementCount > 0 && !main.hasAttribute('aria-busy')"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", required=True, help="a run, or a model file")
    parser.add_argument("--out", required=True, help="the .png file to write")
    parser.add_argument("--entity", help="the entity to ask about")
    parser.add_argument("--relation", help="the relation to ask about")
    parser.add_argument("--answer", help="the answer to explain")
    parser.add_argument("--k", type=int, default=10, help="(default: 10)")
    parser.add_argument("--title", default="KBLRN", help="(default: KBLRN)")
    parser.add_argument("--width", type=int, default=1280, help="(default: 1280)")
    parser.add_argument(
        "--height", type=int, help="(default: that of the whole page, up to 3000)"
    )
    parser.add_argument("--dark", action="store_true", help="in dark colours")
    options = parser.parse_args()
    if Path(options.out).suffix.lower() != ".png":
        sys.exit(f"page: '--out' must end in .png (got {options.out!r})")
    given = {"entity": options.entity, "relation": options.relation}
    given |= {"open": options.answer, "k": options.k}
    query = urlencode({key: value for key, value in given.items() if value})
    with served(options.run, options.title) as url, browser() as window:
        picture = photograph(window, f"{url}?{query}", options)
    write_bytes(Path(options.out), picture)
    print(f"saved {options.out}")


@contextmanager
def served(run: str, title: str) -> Iterator[str]:
    """Runs the command, and returns the address of the page."""
    command = [sys.executable, "-m", "kblrn_pyg.cli", "serve", run, "--title", title]
    command += ["--port", "0", "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = re.match(r"(http://\S+) ", process.stdout.readline())
        if found is None:
            sys.exit("page: the server did not start")
        yield found[1]
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def browser() -> Iterator[Any]:
    """Starts a browser without a window."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        sys.exit("page: chromium and chromedriver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    # The sandbox of Chromium refuses to run as root.
    for word in ("headless=new", "no-sandbox", "disable-dev-shm-usage"):
        options.add_argument(f"--{word}")
    options.add_argument("--hide-scrollbars")
    window = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield window
    finally:
        window.quit()


def photograph(window: Any, url: str, options: argparse.Namespace) -> bytes:
    from selenium.webdriver.support.ui import WebDriverWait

    def resize(height: int) -> None:
        size = {"width": options.width, "height": height, "deviceScaleFactor": 1}
        command = "Emulation.setDeviceMetricsOverride"
        window.execute_cdp_cmd(command, {**size, "mobile": False})

    themes = [
        {"name": "prefers-color-scheme", "value": "dark" if options.dark else "light"},
        {"name": "prefers-reduced-motion", "value": "reduce"},
    ]
    window.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": themes})
    resize(options.height or 900)
    window.get(url)
    WebDriverWait(window, 60).until(lambda one: one.execute_script(SETTLED))
    if options.height is None:
        tall = "return document.documentElement.scrollHeight"
        resize(min(window.execute_script(tall), 3000))
    return window.get_screenshot_as_png()


if __name__ == "__main__":
    main()
