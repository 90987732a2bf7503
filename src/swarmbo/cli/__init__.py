"""The command `swarmbo`.

Every failure ends in one sentence on stderr. Exit codes: 0 done, 2 input that
cannot be used, 1 any other failure (a full disk), 130 stopped by Ctrl-C.
"""

import os
import sys
from collections.abc import Sequence

STOPPED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line (by default that of this process) and return the exit code."""
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        _complain("stopped")
        os._exit(STOPPED)  # at once: a thread may be busy compiling


def _run(arguments: Sequence[str] | None) -> int:
    import typer  # here, so that Ctrl-C is heard while it loads

    from swarmbo.cli.app import app
    from swarmbo.errors import InputError, LostFileError, cut

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal that cannot show every character
    try:
        code = app(arguments, prog_name="swarmbo", standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as error:  # wrong use, for example an unknown option
        message = error.format_message()
        if message:
            _complain(message)
        return 2
    except InputError as error:
        _complain(str(error))
        return 2
    except LostFileError as error:
        _complain(str(error))
        return 1
    except MemoryError:
        _complain("there is not enough memory for this; ask for fewer robots, trials or threads")
        return 1
    except OSError as error:
        place = f"{cut(error.filename)}: " if error.filename else "the output "
        _complain(f"{place}cannot be written ({error.strerror or error})")
        return 1
    if code == STOPPED:  # typer turns Ctrl-C into this code
        raise KeyboardInterrupt
    return code or 0


def _complain(message: str) -> None:
    sentence = " ".join(message.split())
    print(f"swarmbo: {sentence}", file=sys.stderr, flush=True)
