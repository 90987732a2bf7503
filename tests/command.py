"""The command `swarmbo`, called within the tests' process."""

from dataclasses import dataclass

import pytest

from swarmbo.cli import main
from swarmbo.cli.terminal import COMPILING


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
