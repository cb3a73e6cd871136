"""The explorer as a page on this machine: a server of bokeh on 127.0.0.1 that answers pages of its own address only."""

import asyncio
import signal
import webbrowser
from collections.abc import Callable
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
from odesim.explorer.app import Explorer
from odesim.explorer.controls import Controls, Explored
from odesim.explorer.schedule import Newest

HOST = "127.0.0.1"


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
