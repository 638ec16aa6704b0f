"""The page in a browser: Starlette routes, one WebSocket a tab, and uvicorn on this machine alone."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
import tempfile
import webbrowser
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from imapce.app.desk import Desk, Tab
from imapce.app.frames import Buffer, Content, pack, unpack
from imapce.app.guard import Guard, new_token
from imapce.app.study import Study
from imapce.common.threads import a_core_left
from imapce.errors import FileFormatError, InvalidValueError, needs

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


def application(desk: Desk) -> Starlette:
    """The routes of the page over a desk; `Guard` stands before them."""

    async def page(request: Request) -> Response:
        response = FileResponse(STATIC / "index.html", media_type="text/html", headers={"cache-control": "no-cache"})
        who = _browser_cookie(request)
        if who not in request.cookies:
            response.set_cookie(who, secrets.token_urlsafe(16), httponly=True, samesite="strict")
        return response

    async def static(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in FILES:
            return Response("There is no such file.", 404, media_type="text/plain")
        return FileResponse(STATIC / name, media_type=MEDIA[Path(name).suffix], headers={"cache-control": "no-cache"})

    async def upload(request: Request) -> Response:
        return await _received(desk, request)

    async def talk(sock: WebSocket) -> None:
        await _talk(desk, sock)

    async def hover(sock: WebSocket) -> None:
        await _hover(desk, sock)

    @contextlib.asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        yield
        desk.close()

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


FILES = frozenset(path.name for path in STATIC.iterdir() if path.suffix in MEDIA)


def _browser_cookie(request: Request | WebSocket) -> str:
    return f"imapce_{request.url.port or 80}_browser"


async def _received(desk: Desk, request: Request) -> Response:
    """Keep a file that is sent, or refuse it with a sentence once it is too large."""
    key, path = desk.new_upload(request.query_params.get("name", ""))
    size = 0
    try:
        with path.open("xb") as file:
            async for chunk in request.stream():
                size += len(chunk)
                if size > desk.most_bytes:
                    most = f"{desk.most_bytes / 2**20:.4g} MB"
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


async def _talk(desk: Desk, sock: WebSocket) -> None:
    """One socket: messages in, answers and news out; the tab is freed when nobody comes back to it."""
    await sock.accept()
    loop, outbox = asyncio.get_running_loop(), asyncio.Queue[bytes | None]()

    def send(content: Content, buffers: Sequence[Buffer]) -> None:
        frame = pack(content, buffers)
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(outbox.put_nowait, frame)

    browser = sock.cookies.get(_browser_cookie(sock), "")
    tab = await asyncio.to_thread(desk.tab, sock.query_params.get("tab"), browser)
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
            loop.call_later(grace, _free, loop, desk, tab)


async def _hover(desk: Desk, sock: WebSocket) -> None:
    """A second socket for what lies below the pointer: behind a view of a million rows it would wait 100 ms."""
    await sock.accept()
    browser = sock.cookies.get(_browser_cookie(sock), "")
    try:
        while True:
            message, _ = unpack(await sock.receive_bytes())
            tab = desk.held(sock.query_params.get("tab"), browser)
            if tab is None or message.get("type") != "hover":
                break
            await sock.send_bytes(pack(*await asyncio.to_thread(tab.handle, message)))
        await sock.close()
    except (WebSocketDisconnect, FileFormatError, RuntimeError):
        pass


def _free(loop: asyncio.AbstractEventLoop, desk: Desk, tab: Tab) -> None:
    # The server may be going down, and then everything is freed anyway.
    with contextlib.suppress(RuntimeError):
        loop.run_in_executor(None, desk.free, tab)


async def _write(sock: WebSocket, outbox: asyncio.Queue[bytes | None]) -> None:
    while (frame := await outbox.get()) is not None:
        await sock.send_bytes(frame)


def serve(
    study: Study | None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    file: str | None = None,
    token: str | None = None,
    told: Callable[[str], None] = print,
    browser: bool = True,
) -> None:
    """Serve the page until it is interrupted; `told` gets the link. To serve other machines a token must be given."""
    require_place(host, token)
    listener = _listening(host, port)
    with listener, tempfile.TemporaryDirectory(prefix="imapce-app-") as folder:
        port = listener.getsockname()[1]
        desk = Desk(study, Path(folder), file=None if file is None else Path(file))
        token = token or new_token()
        names = ["127.0.0.1", "localhost"] if host in LOOPBACK else [host, "127.0.0.1", "localhost"]
        shown = f"[{host}]" if ":" in host else host
        hosts = [f"{name}:{port}" for name in dict.fromkeys([shown, *names])]
        config = uvicorn.Config(
            Guard(application(desk), token, hosts),
            log_level="warning",
            ws="websockets-sansio",
            ws_per_message_deflate=False,
            ws_max_size=LARGEST_MESSAGE,
            timeout_graceful_shutdown=1,
        )
        link = f"http://{hosts[0]}/login?token={quote(token, safe='')}"
        server = _Server(config, lambda: _started(link, told, browser))
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


def _started(link: str, told: Callable[[str], None], browser: bool) -> None:
    told(link)
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


def _listening(host: str, port: int) -> socket.socket:
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
