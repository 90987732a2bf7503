"""The server of `swarmbo play`: one page of files, and a WebSocket per page with its own swarm.

Pages of other sites must not reach it, though a browser that visits them could: the
name of the host has to be an address at which the server listens, or the one that was
given (a stranger's domain may point to 127.0.0.1), and a WebSocket has to come from the
page itself. Where other machines can reach the server, a token opens the page: it is in
the printed address, and a cookie keeps it for what the page loads.
"""

import secrets
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.resources import files

import uvicorn
from fastapi import FastAPI, Request, Response, WebSocket
from starlette.requests import HTTPConnection

from swarmbo.engine.rollout import default_threads
from swarmbo.maps.behaviour_map import BehaviourMap
from swarmbo.view.play import messages, protocol
from swarmbo.view.play.connections import Connection
from swarmbo.view.play.hosts import host_name, is_loopback, is_served
from swarmbo.view.play.page import Page
from swarmbo.view.play.session import Session

MAX_PAGES = 100  # at the same time
FULL = 1013  # code with which a WebSocket is closed: try again later

PAGE = "index.html"
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
NO_TOKEN = (
    "This page opens with the token in the address that swarmbo play has printed in the terminal "
    "where it was started."
)


class Play:
    """What all pages share: the map, the threads, and who is there."""

    def __init__(
        self, behaviour_map: BehaviourMap, name: str, host: str, *, threads: int | None = None
    ) -> None:
        self.behaviour_map = behaviour_map
        self.host = host
        self.token = None if is_loopback(host) else secrets.token_urlsafe(16)
        self.hello = protocol.write(messages.hello(behaviour_map, name))
        self.pages = 0
        self.pool = ThreadPoolExecutor(threads or default_threads(), "swarm")
        self.files = web_files()

    def app(self) -> FastAPI:
        """The application, to be served."""
        app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)

        @app.middleware("http")
        async def guard(
            request: Request, respond: Callable[[Request], Awaitable[Response]]
        ) -> Response:
            if not self.is_ours(request):
                return Response("This host is not served here.", 421, HEADERS)
            if not self.is_allowed(request):
                return Response(NO_TOKEN, 403, HEADERS, "text/plain")
            response = await respond(request)
            response.headers.update(HEADERS)
            response.headers["Content-Security-Policy"] = policy(request.headers["host"])
            if self.token is not None:
                response.set_cookie(
                    self.cookie(request), self.token, httponly=True, samesite="strict"
                )
            return response

        @app.get("/")
        async def page() -> Response:
            return self.file(PAGE)

        @app.get("/{name}")
        async def file(name: str) -> Response:
            return self.file(name)

        @app.websocket("/swarm")
        async def swarm(socket: WebSocket) -> None:
            await self.serve(socket)

        return app

    def server(self) -> uvicorn.Server:
        """A server of the application: `serve` it at a socket that listens."""
        return uvicorn.Server(
            uvicorn.Config(
                self.app(),
                http=Connection,
                log_config=None,
                access_log=False,
                lifespan="off",
                proxy_headers=False,
                server_header=False,
                ws_max_size=4 * protocol.MAX_MESSAGE,  # longer ones close the page
                ws_per_message_deflate=False,
                timeout_graceful_shutdown=1,
            )
        )

    def file(self, name: str) -> Response:
        """One of the page's files."""
        if name not in self.files:
            return Response("There is no such file.", 404)
        kind, content = self.files[name]
        return Response(content, media_type=kind)

    def is_ours(self, asked: HTTPConnection) -> bool:
        """Whether the Host header names an address where this server listens, or its host."""
        name = host_name(asked.headers.get("host", ""))
        here = asked.scope.get("server") or ("", None)
        return name is not None and is_served(name, self.host, here[0])

    def is_allowed(self, asked: HTTPConnection) -> bool:
        """Whether the token, if one is needed, is in the address or in the cookie."""
        if self.token is None:
            return True
        given = (asked.query_params.get("token", ""), asked.cookies.get(self.cookie(asked), ""))
        token = self.token.encode()
        return any(secrets.compare_digest(each.encode(), token) for each in given)

    def cookie(self, asked: HTTPConnection) -> str:
        """The cookie's name: a browser has the same cookies for all ports of a machine."""
        return f"swarmbo-{asked.scope['server'][1]}"

    async def serve(self, socket: WebSocket) -> None:
        """Let a page have a swarm for as long as it is there."""
        own = f"http://{socket.headers.get('host', '')}"
        is_own = self.is_ours(socket) and socket.headers.get("origin") == own
        if not (is_own and self.is_allowed(socket)):
            await socket.close()  # before it is accepted: HTTP 403
            return
        await socket.accept()
        if self.pages >= MAX_PAGES:
            await socket.close(FULL, "there are too many pages; close some")
            return
        self.pages += 1
        try:
            make = partial(Session, self.behaviour_map)
            await Page(socket, make, self.hello, self.pool).run()
        finally:
            self.pages -= 1


def web_files() -> dict[str, tuple[str, bytes]]:
    """The files that pages are made of: kind and content by name."""
    found = {}
    for entry in (files("swarmbo.view") / "web").iterdir():
        kind = KINDS.get(entry.name[entry.name.rfind(".") :])
        if kind is not None and not entry.name.startswith("replay."):  # pages of their own
            found[entry.name] = kind, entry.read_bytes()
    return found


def policy(host: str) -> str:
    """What a page may load: its own files and its WebSocket, nothing else."""
    return (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        f"connect-src 'self' ws://{host}; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
