"""The connections of the server of `swarmbo play`: requests arrive soon, and few are held."""

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_SECONDS = 5.0  # in which a request has to arrive, also the handshake of a WebSocket
ANSWER_SECONDS = 30.0  # in which its answer has to be taken
MOST_CONNECTIONS = 300  # at the same time, those of open pages among them


class Connection(H11Protocol):
    """A connection that is closed unless it asks for something soon, and takes the answer.

    The clock begins anew with each answer. It ends when the connection has become a
    WebSocket, which may be silent for as long as it answers pings.
    """

    _clock: asyncio.TimerHandle | None = None
    since = 0.0  # when the clock began

    @property
    def is_answering(self) -> bool:
        """Whether a request has arrived that has not been answered yet."""
        return self.cycle is not None and not self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait; close the one that has waited longest when there are too many."""
        super().connection_made(transport)
        self._wait(REQUEST_SECONDS)
        if len(self.connections) > MOST_CONNECTIONS:
            waiting = [
                each
                for each in self.connections
                if isinstance(each, Connection) and not each.is_answering
            ]
            min(waiting, key=lambda each: each.since).give_up()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._stop()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Stop the clock: the handshake has arrived."""
        self._stop()
        super().handle_websocket_upgrade(event)

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self._wait(REQUEST_SECONDS)
        super().on_response_complete()

    def give_up(self) -> None:
        """Close the connection at once, whatever has been sent."""
        self._stop()
        self.connections.discard(self)
        self.transport.abort()

    def _wait(self, seconds: float) -> None:
        self._stop()
        self.since = self.loop.time()
        self._clock = self.loop.call_later(seconds, self._end, seconds)

    def _stop(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _end(self, seconds: float) -> None:
        if self.is_answering and seconds == REQUEST_SECONDS:
            self._wait(ANSWER_SECONDS)
        else:
            self.give_up()
