"""The explorer as a page on this machine: a server of bokeh on 127.0.0.1 that answers pages of its own address only."""

import asyncio
import signal
import webbrowser
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from bokeh.application import Application
from bokeh.application.handlers.function import FunctionHandler
from bokeh.document import Document
from bokeh.server.server import BaseServer
from bokeh.server.tornado import BokehTornado
from bokeh.server.util import bind_sockets
from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop

from odesim.base.errors import StoreError
from odesim.explorer.app import Compute, Explorer, Show
from odesim.explorer.controls import Controls, Explored

HOST = "127.0.0.1"


class Newest:
    """Computes in a thread of its own what was asked last: of jobs that come meanwhile only the newest waits.

    later(f): has f called where the page may be changed.
    """

    def __init__(self, later: Callable[[Callable[[], None]], Any]) -> None:
        self.later, self.pool = later, ThreadPoolExecutor(1)
        self.waiting: tuple[Compute, Show] | None = None
        self.busy = False

    def __call__(self, compute: Compute, show: Show, *, more: bool = False) -> None:
        """Asks for a job; show is called with its result, unless a newer job was asked for before it began."""
        if self.busy:
            if not (more and self.waiting):
                self.waiting = compute, show
            return
        self.busy = True
        self.pool.submit(compute).add_done_callback(lambda done: self.later(lambda: self.finish(done, show)))

    def finish(self, done: "Future[Any]", show: Show) -> None:
        """Shows a result, which may ask for more, and begins the job that waits."""
        try:
            show(done.result())
        finally:
            self.busy = False
            job, self.waiting = self.waiting, None
            if job:
                self(*job)


def make_page(explored: Explored, begin: Controls, document: Document) -> None:
    """Makes a page of bokeh the explorer of these controls: each page that is opened has its own."""
    explorer = Explorer(begin, explored, schedule=Newest(document.add_next_tick_callback))
    document.add_root(explorer.root)
    document.title = f"{explorer.explored.system.name} - odesim"
    document.template = PAGE
    explorer.redraw()


PAGE = """{% block preamble %}<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<style>body { background: #ffffff; color: #222222; font: 14px/1.4 system-ui, sans-serif; }</style>{% endblock %}"""
"""What the page of bokeh has beside: the width of a phone, no request for an icon, its type."""


def make_server(explored: Explored, begin: Controls, port: int = 0) -> tuple[BaseServer, str]:
    """(a server of the explorer on the running loop, its address); port 0 is any that is free. Raises StoreError for one that is taken."""
    try:
        sockets, port = bind_sockets(HOST, port)
    except OSError as error:
        raise StoreError(f"port {port} of {HOST} cannot be used: {error.strerror or error}; without --port a free one is taken") from None
    # a page of another address may not talk to this one: its websocket is refused by its origin
    origins = [f"{host}:{port}" for host in (HOST, "localhost")]
    application = Application(FunctionHandler(lambda document: make_page(explored, begin, document)))
    tornado = BokehTornado({"/": application}, extra_websocket_origins=origins)
    http = HTTPServer(tornado)
    http.add_sockets(sockets)
    return BaseServer(IOLoop.current(), tornado, http), f"http://{HOST}:{port}/"


def serve(
    explored: Explored,
    begin: Controls,
    *,
    port: int = 0,
    browser: bool = True,
    seconds: float | None = None,
    ready: Callable[[str], Any] = print,
) -> None:
    """Serves the explorer until Ctrl-C or SIGTERM, or for so many seconds. ready: called with its address; browser: opens it in one."""

    async def run() -> None:
        server, address = make_server(explored, begin, port)
        server.start()
        end = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, end.set)
        ready(address)
        if browser:
            webbrowser.open(address)
        with suppress(TimeoutError):
            await asyncio.wait_for(end.wait(), seconds)
        server.stop()

    asyncio.run(run())
