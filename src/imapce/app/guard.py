"""Who may talk to the server: one ASGI guard before every page, file and WebSocket.

The link holds a random token, which /login turns into a cookie named by the port (cookies do not know ports). Then
Host, Origin and cookie are checked on every request: another page in the same browser can send one, and must get no
answer.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": CSP,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
}
POLICY_VIOLATION = 1008


def new_token() -> str:
    """A token nobody guesses.

    >>> len(new_token()) > 20
    True
    """
    return secrets.token_urlsafe(24)


def cookie_of(token: str) -> str:
    """What the cookie holds for a token, which may be any text somebody chose: letters and digits that prove it.

    >>> len(cookie_of("a secret; of my own"))
    64
    """
    return hashlib.sha256(f"imapce {token}".encode()).hexdigest()


class Guard:
    """An ASGI application that passes on to `app` only what comes from the page of this server.

    `hosts` are the names, with port, by which the server is called; the first stands in the link.
    """

    def __init__(self, app: App, token: str, hosts: Iterable[str]):
        self._app, self._token, self._hosts = app, token, tuple(hosts)
        self.cookie = f"imapce_{self._hosts[0].rpartition(':')[2]}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, then pass it on or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        headers: dict[str, str] = {}
        for name, value in scope["headers"]:
            key = name.decode("latin-1").lower()
            # A second Host or Origin is no honest request: joined, it equals neither.
            headers[key] = f"{headers[key]},{value.decode('latin-1')}" if key in headers else value.decode("latin-1")
        refused = self._refused(scope, headers)
        if refused is not None:
            await _refuse(scope, receive, send, *refused)
        elif scope["type"] == "http" and scope["path"] == "/login":
            await self._login(scope, send)
        else:
            await self._app(scope, receive, _with_headers(send))

    def _refused(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        """The status and sentence a request is refused with; None where it may pass."""
        if headers.get("host", "").lower() not in self._hosts:
            return 421, "This server answers to its own name only; open the link it printed."
        origin = headers.get("origin")
        own = {f"http://{host}" for host in self._hosts}
        if origin is None:
            if scope["type"] == "websocket":
                return 403, "A socket must come from the page of this server."
        elif origin.lower() not in own:
            return 403, "Requests must come from the page of this server."
        if scope["type"] == "http" and scope["path"] == "/login":
            given, wanted = (
                parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [""])[0],
                self._token,
            )
        else:
            given, wanted = self._given(headers.get("cookie", "")), cookie_of(self._token)
        if not hmac.compare_digest(given.encode(), wanted.encode()):
            return 403, "Open the whole link that `imapce app` printed; it holds the key to this page."
        return None

    def _given(self, cookies: str) -> str:
        try:
            morsel = SimpleCookie(cookies).get(self.cookie)
        except CookieError:
            return ""
        return "" if morsel is None else morsel.value

    async def _login(self, scope: Scope, send: Send) -> None:
        """Trade the token of the link for a cookie, so that it leaves the address bar."""
        cookie = f"{self.cookie}={cookie_of(self._token)}; HttpOnly; SameSite=Strict; Path=/"
        headers = [(b"location", b"/"), (b"set-cookie", cookie.encode()), (b"cache-control", b"no-store")]
        headers += _as_bytes(HEADERS)
        await send({"type": "http.response.start", "status": 303, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


async def _refuse(scope: Scope, receive: Receive, send: Send, status: int, sentence: str) -> None:
    answer = "http.response"
    if scope["type"] == "websocket":
        await receive()
        if "websocket.http.response" not in scope.get("extensions", {}):
            await send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": sentence})
            return
        answer = "websocket.http.response"
    headers = [(b"content-type", b"text/plain; charset=utf-8"), *_as_bytes(HEADERS)]
    await send({"type": f"{answer}.start", "status": status, "headers": headers})
    await send({"type": f"{answer}.body", "body": sentence.encode()})


def _with_headers(send: Send) -> Send:
    async def told(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), *_as_bytes(HEADERS)]
        await send(message)

    return told


def _as_bytes(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in headers.items()]
