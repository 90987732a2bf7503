"""One page of `swarmbo play`: its messages, its swarm, its pictures."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from time import perf_counter
from typing import Any

from fastapi import WebSocket
from starlette.websockets import WebSocketDisconnect, WebSocketState

from swarmbo.errors import InputError
from swarmbo.view.play import messages, protocol
from swarmbo.view.play.session import Session

LOG = logging.getLogger(__name__)
RATE = 40.0  # messages per second that a page may send for long
BURST = 80.0  # and at once
MOST_WAITING = 100  # commands that wait for the swarm's turns
SLICE = 0.03  # s that a swarm runs before it is the next one's turn
MODEL_INTERVAL = 0.2  # s between two pictures of a learner's model
IDLE = 600.0  # s that a page which stands still sleeps
TOO_MUCH, FAILED = 1008, 1011  # codes with which a WebSocket is closed


class Page:
    """One page: its messages come in, its swarm runs at its speed, pictures go out."""

    def __init__(
        self, socket: WebSocket, make: Callable[[], Session], hello: str, pool: Executor
    ) -> None:
        self.socket = socket
        self.make = make
        self.hello = hello
        self.pool = pool
        self.asked: deque[protocol.Command | str] = deque()  # an error is a sentence
        self.wake = asyncio.Event()
        self.model_sent = 0.0

    async def run(self) -> None:
        """Go on until the page is closed."""
        listening = asyncio.ensure_future(self._listen())
        running = asyncio.ensure_future(self._run())
        try:
            done, _ = await asyncio.wait((listening, running), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (listening, running):
                task.cancel()
            self.asked.clear()  # a thread at work must not go on for nobody
            await asyncio.gather(listening, running, return_exceptions=True)
        error = running.exception() if running in done else None
        if error is not None and listening not in done:
            if isinstance(error, WebSocketDisconnect):
                return
            LOG.error("a swarm has failed", exc_info=error)
            await self._close(FAILED, "the swarm has failed; load the page again")

    async def _close(self, code: int, words: str) -> None:
        if self.socket.application_state is WebSocketState.CONNECTED:
            await self.socket.close(code, words)

    async def _listen(self) -> None:
        """Take messages: commands wait for the swarm's next turn."""
        allowance, last = BURST, perf_counter()
        while True:
            message = await self.socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            now = perf_counter()
            allowance = min(BURST, allowance + RATE * (now - last)) - 1
            last = now
            if allowance < 0 or len(self.asked) >= MOST_WAITING:
                await self._close(TOO_MUCH, "too many messages; send fewer")
                return
            text = message.get("text")
            try:
                self.asked.append(protocol.read(message["bytes"] if text is None else text))
            except InputError as error:
                self.asked.append(str(error))
            self.wake.set()

    async def _run(self) -> None:
        """Give the swarm its turns, each as long as a picture lasts, and send what is new."""
        await self.socket.send_text(self.hello)
        session = await self._in_thread(self.make)
        last = due = perf_counter()
        while True:
            await self._rest(due - perf_counter() if session.is_busy else IDLE)
            now = perf_counter()
            seconds, last = now - last, now
            for text in await self._in_thread(self._turn, session, seconds):
                await self.socket.send_text(text)
            if now >= due:  # not woken early, by a message
                due = max(due + session.interval, perf_counter())

    async def _in_thread(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function in one of the threads in which swarms run."""
        return await asyncio.get_running_loop().run_in_executor(self.pool, function, *arguments)

    async def _rest(self, seconds: float) -> None:
        if self.asked:
            return
        self.wake.clear()
        try:
            async with asyncio.timeout(max(seconds, 0)):
                await self.wake.wait()
        except TimeoutError:
            pass

    def _obey(self, session: Session, until: float) -> list[dict[str, Any]]:
        """Do what was asked for until the clock says so, at least one thing; the complaints."""
        told: list[dict[str, Any]] = []
        waits = True
        while waits:
            try:
                command = self.asked.popleft()
            except IndexError:  # also when the page has been closed meanwhile
                break
            try:
                if isinstance(command, str):
                    raise InputError(command)
                session.apply(command)
            except InputError as error:
                told.append({"type": "error", "message": str(error)})
                session.news.add("state")  # the page may have believed otherwise
            waits = perf_counter() < until
        return told

    def _turn(self, session: Session, seconds: float) -> list[str]:
        """Do what was asked for, run, and say what is new; in a thread."""
        session.turn(seconds, until=perf_counter() + SLICE)
        told = self._obey(session, until=perf_counter() + SLICE)
        news, session.news = session.news, set()
        too_soon = perf_counter() < self.model_sent + MODEL_INTERVAL
        if "model" in news and too_soon and session.is_busy:
            session.news.add("model")  # later
            news.discard("model")
        if "world" in news:
            told.append(messages.world(session))
        if "state" in news:
            told.append(messages.state(session))
        if "model" in news:
            told.append(messages.model(session))
            self.model_sent = perf_counter()
        told.append(messages.frame(session))
        return [protocol.write(message) for message in told]
