"""Settings of all tests."""

import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# A process in the background of a script inherits that Ctrl-C is ignored, and so do those that it
# starts: here it is heard.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The first example of an engine test compiles kernels.
settings.register_profile("swarmbo", deadline=None)
settings.load_profile("swarmbo")

# Files that take longest, the longest first: begun last, one of them would keep a core busy alone.
LONGEST = ("test_docs", "test_play_page", "test_play", "test_replay", "test_study", "test_naive")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take longest."""
    ranks = {name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: ranks.get(Path(item.path).stem, len(ranks)))


CHROMIUM = Path("/usr/bin/chromium")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Debian's Chromium."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not CHROMIUM.exists():
        pytest.skip(f"there is no {CHROMIUM}")
    options = ("--no-sandbox", "--headless", "--disable-gpu", "--no-first-run")
    with playwright.sync_playwright() as engine:
        browser = engine.chromium.launch(
            executable_path=str(CHROMIUM), args=[*options, "--disable-background-networking"]
        )
        yield browser
        browser.close()
