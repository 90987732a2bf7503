"""`swarmbo play`: a page on which to break a swarm and watch it recover."""

import asyncio
import webbrowser
from threading import Thread
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from swarmbo.cli.terminal import errors, load_kernels
from swarmbo.errors import InputError, naming
from swarmbo.maps.behaviour_map import BehaviourMap, load_map
from swarmbo.paper.conditions import DEMONSTRATION
from swarmbo.view.play.hosts import address_of, listen

MAP = DEMONSTRATION[0]


def play(
    behaviour_map: Annotated[
        str,
        typer.Option(
            "--map",
            metavar="MAP",
            help="A map's file, or the name of a map that comes with swarmbo.",
        ),
    ] = MAP,
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="Where to listen; if not loopback, other machines reach it with a token.",
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="0 takes a free one.")
    ] = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address, but do not open it.")
    ] = False,
) -> None:
    """Break a swarm in the browser, and watch it recover.

    Serves a page on this machine: six or twelve robots forage at any speed; break their
    sensors, wheels or software, take food away, let a learner repair them, or run any
    controller of the map. Every page has a swarm of its own. Ctrl-C ends it.
    Needs the extra "play".

    \b
    For example:
    swarmbo play
    swarmbo play --map mine.map --port 8000
    swarmbo play --no-browser
    """
    loaded = load_map(behaviour_map)
    with naming(behaviour_map):
        loaded.controllers()
    try:
        from swarmbo.view.play.server import Play
    except ModuleNotFoundError as error:
        raise InputError(
            f"swarmbo play needs {error.name}, which is not installed; "
            'install it with pip install "swarmbo[play]"'
        ) from None
    listening = listen(host, port)
    try:
        _load(loaded)
        served = Play(loaded, behaviour_map, host)
        if served.token is not None:
            errors.print(
                f"Everyone who can reach this machine at {escape(host)} and has the token in the "
                "address can use this page and the processors of this machine.",
                soft_wrap=True,
            )
        address = address_of(listening, served.token)
        Console(highlight=False, soft_wrap=True).print(
            f"{address} shows the swarm; Ctrl-C ends it."
        )
        if not no_browser:
            Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        asyncio.run(served.server().serve(sockets=[listening]))
    finally:
        listening.close()


def _load(behaviour_map: BehaviourMap) -> None:
    from swarmbo.world.scenario import Scenario

    assert behaviour_map.genomes is not None
    scenario = Scenario.draw(seed=1, trials=1)
    load_kernels(scenario, [behaviour_map.genomes.controller(0)] * scenario.robots)
