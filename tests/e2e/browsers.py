"""Chromium, without a window."""

import contextlib
import shutil
from collections.abc import Iterator

from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MINUTE = 60_000
SCHEMES = ("light", "dark")


@contextlib.contextmanager
def launched(*arguments: str) -> Iterator[Browser]:
    """Debian's Chromium, or one like it."""
    place = next((found for name in NAMES if (found := shutil.which(name))), None)
    assert place is not None, f"these tests need one of {', '.join(NAMES)}: apt-get install chromium"
    words = ["--no-sandbox", "--disable-dev-shm-usage", *arguments]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=place, args=words, timeout=2 * MINUTE)
        yield browser
        browser.close()
