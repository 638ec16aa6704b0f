"""The page in a browser: Starlette routes, one WebSocket a tab, and uvicorn on this machine alone.

A guard stands before every page, file and socket. The link holds a random token, which /login turns into a cookie named
by the port (cookies do not know ports). Then Host, Origin and cookie are checked on every request: another page in the
same browser can send one, and must get no answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import secrets
import socket
import tempfile
import webbrowser
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, MutableMapping, Sequence
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote

from imapce.app.messages import Buffer, Content, pack, unpack
from imapce.app.study import Study
from imapce.app.tabs import Tab, Tabs
from imapce.common.work import a_core_left
from imapce.errors import FileFormatError, InvalidValueError, needs
from imapce.plotting.reports.page import SCRIPTS, SHARED

with needs("the browser app", "imapce[app]"):
    import uvicorn
    import websockets  # noqa: F401 - uvicorn finds it by itself, and says nothing where it is not there
    from starlette.applications import Starlette
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import FileResponse, JSONResponse, Response
    from starlette.routing import Route, WebSocketRoute
    from starlette.websockets import WebSocket, WebSocketDisconnect

STATIC = Path(__file__).parent / "static"
MEDIA = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
LARGEST_MESSAGE = 16 << 20
# A page that goes may be a reload; one that just fell silent may be a laptop that sleeps. However a page goes, the
# browser closes its socket with 1001; words that the page itself sent at that moment were lost now and then.
GRACE_CLOSED, GRACE_DROPPED = 3.0, 60.0
GOING_AWAY = 1001
LOOPBACK = ("127.0.0.1", "localhost", "::1")
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
SendPart = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, SendPart], Awaitable[None]]

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


def application(tabs: Tabs) -> Starlette:
    """The routes of the page over all tabs; `Guard` stands before them."""

    async def page(request: Request) -> Response:
        response = FileResponse(STATIC / "index.html", media_type="text/html", headers={"cache-control": "no-cache"})
        who = _browser_cookie(request)
        if who not in request.cookies:
            response.set_cookie(who, secrets.token_urlsafe(16), httponly=True, samesite="strict")
        return response

    async def static(request: Request) -> Response:
        path = FILES.get(request.path_params["name"])
        if path is None:
            return Response("There is no such file.", 404, media_type="text/plain")
        return FileResponse(path, media_type=MEDIA[path.suffix], headers={"cache-control": "no-cache"})

    async def upload(request: Request) -> Response:
        return await _receive(tabs, request)

    async def talk(sock: WebSocket) -> None:
        await _talk(tabs, sock)

    async def hover(sock: WebSocket) -> None:
        await _hover(tabs, sock)

    @contextlib.asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        yield
        tabs.close()

    return Starlette(
        routes=[
            Route("/", page),
            Route("/favicon.ico", lambda request: FileResponse(STATIC / "icon.svg", media_type="image/svg+xml")),
            Route("/static/{name}", static),
            Route("/upload", upload, methods=["POST"]),
            WebSocketRoute("/talk", talk),
            WebSocketRoute("/hover", hover),
        ],
        lifespan=life,
    )


_shared = (SCRIPTS / f"{name}.js" for name in SHARED)
FILES = {path.name: path for path in (*_shared, *STATIC.iterdir()) if path.suffix in MEDIA}


def _browser_cookie(request: Request | WebSocket) -> str:
    return f"imapce_{request.url.port or 80}_browser"


async def _receive(tabs: Tabs, request: Request) -> Response:
    """Keep a file that is sent, or refuse it with a sentence once it is too large."""
    key, path = tabs.new_upload(request.query_params.get("name", ""))
    size = 0
    try:
        with path.open("xb") as file:
            async for chunk in request.stream():
                size += len(chunk)
                if size > tabs.most_bytes:
                    most = f"{tabs.most_bytes / 2**20:.4g} MB"
                    raise FileFormatError(
                        f"{path.name!r} is larger than the {most} a page takes; name it on the command line instead: "
                        "imapce app FILE."
                    )
                await asyncio.to_thread(file.write, chunk)
    except FileFormatError as problem:
        path.unlink(missing_ok=True)
        return JSONResponse({"error": str(problem)}, 413)
    except ClientDisconnect:
        path.unlink(missing_ok=True)
        return Response(status_code=400)
    return JSONResponse({"upload": key})


async def _talk(tabs: Tabs, sock: WebSocket) -> None:
    """One socket: messages in, answers and news out; the tab is freed when nobody comes back to it."""
    await sock.accept()
    loop, outbox = asyncio.get_running_loop(), asyncio.Queue[bytes | None]()

    def send(content: Content, buffers: Sequence[Buffer]) -> None:
        frame = pack(content, buffers)
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(outbox.put_nowait, frame)

    browser = sock.cookies.get(_browser_cookie(sock), "")
    tab = await asyncio.to_thread(tabs.tab, sock.query_params.get("tab"), browser)
    tab.attach(send)
    writer = asyncio.create_task(_write(sock, outbox))
    grace = GRACE_DROPPED
    try:
        while True:
            message, buffers = unpack(await sock.receive_bytes())
            send(*await asyncio.to_thread(tab.handle, message, buffers))
    except WebSocketDisconnect as gone:
        grace = GRACE_CLOSED if gone.code == GOING_AWAY else GRACE_DROPPED
    except (FileFormatError, RuntimeError):
        pass
    finally:
        outbox.put_nowait(None)
        with contextlib.suppress(Exception):
            await writer
        if tab.detach(send):
            loop.call_later(grace, _free, loop, tabs, tab)


async def _hover(tabs: Tabs, sock: WebSocket) -> None:
    """A second socket for what lies below the pointer: behind a view of a million rows it would wait 100 ms."""
    await sock.accept()
    browser = sock.cookies.get(_browser_cookie(sock), "")
    try:
        while True:
            message, _ = unpack(await sock.receive_bytes())
            tab = tabs.held(sock.query_params.get("tab"), browser)
            if tab is None or message.get("type") != "hover":
                break
            await sock.send_bytes(pack(*await asyncio.to_thread(tab.handle, message)))
        await sock.close()
    except (WebSocketDisconnect, FileFormatError, RuntimeError):
        pass


def _free(loop: asyncio.AbstractEventLoop, tabs: Tabs, tab: Tab) -> None:
    # The server may be going down, and then everything is freed anyway.
    with contextlib.suppress(RuntimeError):
        loop.run_in_executor(None, tabs.free, tab)


async def _write(sock: WebSocket, outbox: asyncio.Queue[bytes | None]) -> None:
    while (frame := await outbox.get()) is not None:
        await sock.send_bytes(frame)


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

    async def __call__(self, scope: Scope, receive: Receive, send: SendPart) -> None:
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
            query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
            given, wanted = query.get("token", [""])[0], self._token
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

    async def _login(self, scope: Scope, send: SendPart) -> None:
        """Trade the token of the link for a cookie, so that it leaves the address bar."""
        cookie = f"{self.cookie}={cookie_of(self._token)}; HttpOnly; SameSite=Strict; Path=/"
        headers = [(b"location", b"/"), (b"set-cookie", cookie.encode()), (b"cache-control", b"no-store")]
        headers += _as_bytes(HEADERS)
        await send({"type": "http.response.start", "status": 303, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


async def _refuse(scope: Scope, receive: Receive, send: SendPart, status: int, sentence: str) -> None:
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


def _with_headers(send: SendPart) -> SendPart:
    async def send_all(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), *_as_bytes(HEADERS)]
        await send(message)

    return send_all


def _as_bytes(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in headers.items()]


def serve(
    study: Study | None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    file: str | None = None,
    token: str | None = None,
    tell: Callable[[str], None] = print,
    browser: bool = True,
) -> None:
    """Serve the page until it is interrupted; `tell` gets the link. To serve other machines a token must be given."""
    require_place(host, token)
    listener = _listen(host, port)
    with listener, tempfile.TemporaryDirectory(prefix="imapce-app-") as folder:
        port = listener.getsockname()[1]
        tabs = Tabs(study, Path(folder), file=None if file is None else Path(file))
        token = token or secrets.token_urlsafe(24)
        names = ["127.0.0.1", "localhost"] if host in LOOPBACK else [host, "127.0.0.1", "localhost"]
        shown = f"[{host}]" if ":" in host else host
        hosts = [f"{name}:{port}" for name in dict.fromkeys([shown, *names])]
        config = uvicorn.Config(
            Guard(application(tabs), token, hosts),
            log_level="warning",
            ws="websockets-sansio",
            ws_per_message_deflate=False,
            ws_max_size=LARGEST_MESSAGE,
            timeout_graceful_shutdown=1,
        )
        link = f"http://{hosts[0]}/login?token={quote(token, safe='')}"
        server = _Server(config, lambda: _announce(link, tell, browser))
        # With threads on every core a fit of a million rows kept the page waiting 68 ms for an answer, now and then.
        with a_core_left():
            if study is not None:
                study.prepare()
            server.run(sockets=[listener])


def require_place(host: str, token: str | None) -> None:
    """Refuse to listen to other machines without a secret that somebody chose.

    >>> require_place("127.0.0.1", None)
    """
    if host not in LOOPBACK and not token:
        raise InvalidValueError(
            f"--host must be 127.0.0.1 unless a token is given, got {host!r}: set IMAPCE_TOKEN to a secret of your own."
        )


def _announce(link: str, tell: Callable[[str], None], browser: bool) -> None:
    tell(link)
    if browser:
        webbrowser.open(link)


class _Server(uvicorn.Server):
    """uvicorn, telling when it listens."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]):
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[Any] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            await asyncio.to_thread(self._ready)


def _listen(host: str, port: int) -> socket.socket:
    """A socket that listens; another program on the port is one sentence."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as problem:
        listener.close()
        reason = problem.strerror or str(problem)
        raise InvalidValueError(
            f"--host and --port must be a free place on this machine, got {host}:{port} ({reason}): leave --port out "
            "and one is found."
        ) from problem
    return listener
