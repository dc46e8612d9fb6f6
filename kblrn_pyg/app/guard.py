"""Checks of every request, and the security headers of every answer."""

import json
import logging
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

logger = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

# The longest path and query that are read, in bytes.
_LONGEST_PATH, _LONGEST_QUERY = 200, 8192

# The page runs its own scripts only, loads nothing from elsewhere, sends nothing
# elsewhere, is in no frame, and cannot make elements of text.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}


class Guard:
    r"""Refuses requests that the page itself never sends.

    Another web site can make a browser send requests to a name that resolves to
    this machine (DNS rebinding). The :obj:`Host` header still contains that name,
    so such requests are refused.

    Args:
        app (callable): The application to protect.
        hosts (iterable): The host names that requests may use, without ports.
    """

    def __init__(self, app: App, hosts: Iterable[str]) -> None:
        self.app = app
        self.hosts = {host.lower() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # there are no web sockets
            await send({"type": "websocket.close", "code": 1008})
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = [(k.encode(), v.encode()) for k, v in HEADERS.items()]
                message["headers"] = [*message.get("headers", ()), *added]
            await send(message)

        refused = self._refusal(scope)
        if refused is None:
            await self.app(scope, receive, send_with_headers)
            return
        try:
            await _refuse(*refused, send_with_headers)
        except Exception:  # a server's own, if the rest of the request broke the rules
            logger.debug("a refusal could not be sent", exc_info=True)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Returns the status and the reason, if a request is refused."""
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value)
        hosts = headers.get(b"host", [])
        if len(hosts) != 1 or _host(hosts[0]) not in self.hosts:
            return 421, "this name is not one of this server"
        if scope["method"] != "GET":
            return 405, "everything here is read-only"
        length = headers.get(b"content-length", [b"0"])
        if b"transfer-encoding" in headers or length != [b"0"]:
            return 413, "requests have no content"
        if len(scope["raw_path"]) > _LONGEST_PATH:
            return 414, "the path is too long"
        if len(scope["query_string"]) > _LONGEST_QUERY:
            return 414, "the query is too long"
        return None


def _host(value: bytes) -> str:
    """Returns the name in a ``Host`` header, without its port."""
    text = value.decode("latin-1").lower()
    if text.startswith("["):
        return text.partition("]")[0][1:]
    return text.partition(":")[0]


async def _refuse(status: int, reason: str, send: Send) -> None:
    body = json.dumps({"detail": reason, "nearest": []}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        # What the request still holds is not read.
        (b"connection", b"close"),
    ]
    if status == 405:
        headers.append((b"allow", b"GET"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
