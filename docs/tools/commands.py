"""Write docs/commands.md: every command of swarmbo, as its own help describes it.

python docs/tools/commands.py

A test compares the page with the commands, so that it cannot go stale.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from swarmbo.cli.app import app
from swarmbo.files import whole_file

PAGE = Path(__file__).parent.parent / "commands.md"
EXAMPLES = "\b\nFor example:\n"  # begins the last paragraph of a help text
MORE = {  # where a command has a page of its own, and under which name
    "swarmbo simulate": "formats.md|File formats",
    "swarmbo evolve": "method.md#evolution|How it works",
    "swarmbo recover": "recovery.md|Recovery",
    "swarmbo replay": "replay.md|Replay",
    "swarmbo play": "play.md|Play",
    "swarmbo map evaluate": "formats.md#scores-of-a-map|File formats",
    "swarmbo study run": "studies.md|Studies",
    "swarmbo study repair": "studies.md#the-journal|Studies",
    "swarmbo study report": "reports.md|Reports",
    "swarmbo bench": "benchmarks.md|Benchmarks",
}
INTRODUCTION = """\
# Commands

`swarmbo COMMAND --help` prints what is written here, and `swarmbo --version` the version. Exit
codes: 0 for done, 2 for input that cannot be used (one sentence says what would be right, and
nothing is written), 1 for any other failure such as a full disk, 130 when stopped by Ctrl-C. With
`--json` the output is one JSON object and nothing else; messages go to the standard error.
"""
FOOTER = """\
This page is made from the commands themselves by `python docs/tools/commands.py`.
"""


def page() -> str:
    """The page as Markdown."""
    commands = list(walk(typer.main.get_command(app), "swarmbo"))
    contents = [
        f"| [`{name}`](#{name.replace(' ', '-')}) | {paragraphs(command)[0].rstrip('.')} |"
        for name, command in commands
    ]
    overview = "\n".join(["| command | what it does |", "| --- | --- |", *contents])
    sections = [section(name, command) for name, command in commands]
    return "\n".join([INTRODUCTION, overview + "\n", *sections, FOOTER])


def walk(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """All commands that can be run, with their full names."""
    if command.hidden:
        return
    if not hasattr(command, "commands"):
        yield name, command
        return
    for part, below in command.commands.items():
        yield from walk(below, f"{name} {part}")


def paragraphs(command: Any) -> list[str]:
    """The paragraphs of a command's help, each on one line, without the examples."""
    text = command.help.partition(EXAMPLES)[0]
    return [" ".join(paragraph.split()) for paragraph in text.strip().split("\n\n")]


def section(name: str, command: Any) -> str:
    """A command: what it does, how it is called, what it takes, and examples."""
    summary, *rest = paragraphs(command)
    parameters = [each for each in command.params if not getattr(each, "hidden", False)]
    arguments = [each for each in parameters if each.param_type_name == "argument"]
    options = [each for each in parameters if each.param_type_name == "option"]
    usage = [name, *map(argument_name, arguments)]
    usage += [f"{each.opts[0]} {each.metavar}" for each in options if each.required]
    usage += ["[OPTIONS]"] if any(not each.required for each in options) else []
    parts = [f"## {name}", summary, *rest, f"```sh\n{' '.join(usage)}\n```"]
    if arguments:
        rows = [
            f"| `{cell(argument_name(each))}` | {cell(each.help)}{ending(each)} |"
            for each in arguments
        ]
        parts.append("\n".join(["| argument | what |", "| --- | --- |", *rows]))
    rows = [f"| {option_name(each)} | {cell(each.help)}{ending(each)} |" for each in options]
    parts.append("\n".join(["| option | what |", "| --- | --- |", *rows]))
    _, _, examples = command.help.partition(EXAMPLES)
    if examples:
        parts += ["For example:", f"```sh\n{examples.strip()}\n```"]
    if name in MORE:
        target, _, title = MORE[name].partition("|")
        parts.append(f"More: [{title}]({target}).")
    return "\n\n".join(parts) + "\n"


def argument_name(argument: Any) -> str:
    """An argument as it is written in a command."""
    name = f"{argument.metavar}..." if argument.nargs == -1 else argument.metavar
    return name if argument.required else f"[{name}]"


def option_name(option: Any) -> str:
    """An option as it is written in a command, and what it takes."""
    names: list[str] = [*option.opts, *option.secondary_opts]
    if option.metavar is not None:
        names[-1] += f" {cell(option.metavar)}"
    return ", ".join(f"`{each}`" for each in names)


def ending(parameter: Any) -> str:
    """Whether a parameter must be given, or what holds if it is not."""
    if parameter.required:
        return " Needed." if parameter.param_type_name == "option" else ""
    shown = parameter.show_default
    if isinstance(shown, str):
        return f" Default: {cell(shown)}."
    if getattr(parameter, "is_flag", False):
        chosen = parameter.opts if parameter.default else parameter.secondary_opts
        return f" Default: `{chosen[0]}`." if chosen else ""
    return "" if not shown or parameter.default is None else f" Default: `{parameter.default}`."


def cell(text: str) -> str:
    """Text for a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    with whole_file(PAGE) as temporary:
        temporary.write_text(page(), encoding="utf-8")
