"""A local server that misbehaves as real ones do: `with answering(reply) as url`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ssl import SSLContext, SSLError
from threading import Thread
from time import sleep
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server says."""

    body: str = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    wait_seconds: float = 0.0
    promise_more: int = 0
    hangs_up: bool = False
    stall_seconds: float = 0.0


@dataclass(slots=True)
class Request:
    """What it was asked."""

    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]


@contextmanager
def answering(
    reply: Callable[[Request], Reply], *, tls: SSLContext | None = None
) -> Iterator[tuple[str, list[Request]]]:
    """Serves on a free port; gives the address and the requests as they come."""
    seen: list[Request] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            request = Request(parts.path, parse_qs(parts.query), dict(self.headers))
            seen.append(request)
            said = reply(request)
            sleep(said.wait_seconds)
            if said.hangs_up:
                return
            body = said.body.encode()
            try:
                self.send_response(said.status)
                for name, value in said.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body) + said.promise_more))
                self.end_headers()
                half = len(body) // 2 if said.stall_seconds else 0
                self.wfile.write(body[:half])
                sleep(said.stall_seconds)
                self.wfile.write(body[half:])
            except (BrokenPipeError, ConnectionResetError, SSLError):
                pass  # the client has given up, as it should

        def log_message(self, *_args: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        server.server_close()
