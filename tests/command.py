"""The command `swarmbo`, called within the tests' process."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from swarmbo.cli import main
from swarmbo.cli.terminal import COMPILING

# How long a test waits, in seconds, for what comes in a moment on an idle machine. What is
# interrupted would take far longer.
PATIENCE = 300


def wait_until(condition: Callable[[], object]) -> None:
    """Wait until something is so; TimeoutError when it does not come."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.01)


@dataclass
class Outcome:
    """How a command ended and what it printed."""

    code: int
    stdout: str
    stderr: str


def swarmbo(capsys: pytest.CaptureFixture[str], *arguments: object) -> Outcome:
    """Run `swarmbo` with these arguments; what the first one on a machine says is left out."""
    capsys.readouterr()
    code = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return Outcome(code, out, err.replace(f"{COMPILING}\n", ""))
