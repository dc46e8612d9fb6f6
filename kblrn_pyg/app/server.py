"""Runs the application on this machine."""

import logging
import socket
import webbrowser
from collections.abc import Callable, Iterable

import uvicorn

from kblrn_pyg.app.api import LOCAL, create_app
from kblrn_pyg.nn import KBLRN

# How many bytes of headers are read, and how many requests wait at most.
_MAX_HEADERS, _MAX_WAITING = 16384, 200
_EVERYWHERE = ("0.0.0.0", "::")


def serve(
    model: KBLRN,
    host: str = "127.0.0.1",
    port: int = 8237,
    title: str = "KBLRN",
    hosts: Iterable[str] = (),
    open_browser: bool = False,
    ready: Callable[[str], None] | None = None,
) -> None:
    r"""Serves the page until the process is interrupted.

    Args:
        model (KBLRN): The model.
        host (str, optional): The address to listen on; by default, other machines
            cannot connect. (default: :obj:`"127.0.0.1"`)
        port (int, optional): The port, or :obj:`0` for any free port.
            (default: :obj:`8237`)
        title (str, optional): The title of the page. (default: :obj:`"KBLRN"`)
        hosts (iterable, optional): Additional host names that requests may use.
            (default: :obj:`()`)
        open_browser (bool, optional): Whether to open the page.
            (default: :obj:`False`)
        ready (callable, optional): Called with the address of the page before
            requests are answered. (default: :obj:`None`)
    """
    listener = _listen(host, port)  # or else it is refused before anything else
    allowed = {*LOCAL, *hosts} | (set() if host in _EVERYWHERE else {host})
    app = create_app(model, title, allowed)
    app.state.asking.warm_up()
    shown = "localhost" if host in (*LOCAL, *_EVERYWHERE) else host
    shown = f"[{shown}]" if ":" in shown else shown
    url = f"http://{shown}:{listener.getsockname()[1]}/"
    config = uvicorn.Config(
        app,
        log_level=logging.WARNING,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        h11_max_incomplete_event_size=_MAX_HEADERS,
        limit_concurrency=_MAX_WAITING,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=2,
    )
    if ready is not None:
        ready(url)
    if open_browser:
        webbrowser.open(url)  # which waits: the port is open already
    uvicorn.Server(config).run([listener])


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise OSError(
            f"cannot listen at {host}, port {port}: {error.strerror}"
        ) from None
    return listener
