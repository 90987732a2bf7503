"""A server of `swarmbo play` in a thread of the tests' process, and clients of it."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

import pytest

pytest.importorskip("fastapi", reason="the extra play is not installed")
client = pytest.importorskip("websockets.sync.client", reason="the extra play is not installed")

from swarmbo.maps.behaviour_map import load_map  # noqa: E402
from swarmbo.view.play.hosts import address_of, listen  # noqa: E402
from swarmbo.view.play.server import Play  # noqa: E402
from tests.command import PATIENCE  # noqa: E402


@contextmanager
def served(host: str = "127.0.0.1") -> Iterator[tuple[Play, str]]:
    """What is served, and its address."""
    listening = listen(host, 0)
    play = Play(load_map("paper-1"), "paper-1", host)
    server = play.server()
    thread = Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])))
    thread.start()
    try:
        yield play, address_of(listening, play.token)
    finally:
        server.should_exit = True
        thread.join()
        play.pool.shutdown()
        listening.close()


class Visitor:
    """A page without a browser."""

    def __init__(self, address: str, **options: Any) -> None:
        parts = urlsplit(address)  # with the token, if one is needed
        options = {"origin": f"http://{parts.netloc}", "compression": None} | options
        where = parts._replace(scheme="ws", path="/swarm").geturl()
        self.connecting = client.connect(where, **options)

    def __enter__(self) -> "Visitor":
        self.socket = self.connecting.__enter__()
        return self

    def __exit__(self, *problem: Any) -> None:
        self.connecting.__exit__(*problem)

    def say(self, kind: str, **fields: Any) -> None:
        """Send a message."""
        self.socket.send(json.dumps({"type": kind, **fields}))

    def say_often(self, kind: str, count: int) -> None:
        """Send a message again and again, and wait for what comes of it."""
        for _ in range(count):
            self.say(kind)
        self.hear("nothing")

    def hear(self, kind: str, **wanted: Any) -> dict[str, Any]:
        """The next message of a kind that has these values."""
        end = monotonic() + PATIENCE
        while monotonic() < end:
            message: dict[str, Any] = json.loads(self.socket.recv(timeout=PATIENCE))
            if message["type"] == kind and wanted.items() <= message.items():
                return message
        raise AssertionError(f"no {kind} with {wanted}")
