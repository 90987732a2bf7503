"""The commands and their options."""

import re
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from swarmbo.cli.bench import bench
from swarmbo.cli.evolve import evolve
from swarmbo.cli.map import app as map_app
from swarmbo.cli.play import play
from swarmbo.cli.recover import recover
from swarmbo.cli.replay import replay
from swarmbo.cli.simulate import simulate
from swarmbo.cli.study import app as study_app
from swarmbo.errors import QUOTED, cut
from swarmbo.version import __version__


class Commands(TyperGroup):
    """The commands; complaints about wrong use quote values as all others do."""

    def main(self, *args: Any, **settings: Any) -> Any:
        """Run a command."""
        try:
            return super().main(*args, **settings)
        except typer.TyperException as error:
            values = rf"(?<=')[^']{{{QUOTED},}}(?=')|\S{{{QUOTED},}}"
            message = re.sub(values, lambda found: cut(found[0]), error.message)
            error.message = cut(message, 2 * QUOTED)  # of many short ones, too
            raise


app = typer.Typer(
    cls=Commands,
    help="Robot swarms that repair themselves, on a fast simulator that follows ARGoS.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command(no_args_is_help=True)(simulate)
app.command()(evolve)
app.add_typer(map_app, name="map")
app.command()(recover)
app.command(no_args_is_help=True)(replay)
app.command()(play)
app.add_typer(study_app, name="study")
app.command()(bench)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"swarmbo {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    pass
