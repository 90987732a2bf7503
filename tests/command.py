"""The command `swarmbo`, called within the tests' process."""

from dataclasses import dataclass

import pytest

from swarmbo.cli import main


@dataclass
class Outcome:
    """How a command ended and what it printed."""

    code: int
    stdout: str
    stderr: str


def swarmbo(capsys: pytest.CaptureFixture[str], *arguments: object) -> Outcome:
    """Run `swarmbo` with these arguments."""
    capsys.readouterr()
    code = main([str(argument) for argument in arguments])
    return Outcome(code, *capsys.readouterr())
