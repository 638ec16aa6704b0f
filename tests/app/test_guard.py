"""Who gets in: a real server, real sockets, and requests that a page of somebody else could send."""

from __future__ import annotations

import base64
import os
import socket

import pytest

from commands import refusal
from imapce.app.server import CSP, cookie_of
from served import Server


@pytest.fixture
def server(start: Server) -> Server:
    return start


def answer(server: Server, path: str, *, method: str = "GET", body: bytes = b"", **headers: str) -> tuple[int, str]:
    """Status and head of a request written by hand: a library would not send a wrong Host or two."""
    told = {"Host": server.address, "Connection": "close", "Content-Length": str(len(body))}
    told |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in told.items()), "", ""]
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as sock:
        sock.sendall("\r\n".join(lines).encode() + body)
        received = b""
        while b"\r\n\r\n" not in received and (part := sock.recv(65536)):
            received += part
    head = received.partition(b"\r\n\r\n")[0].decode("latin-1")
    return int(head.split()[1]), head.lower()


def upgrade(server: Server, **headers: str) -> int:
    key = base64.b64encode(os.urandom(16)).decode()
    asked = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec_WebSocket_Key": key, "Sec_WebSocket_Version": "13"}
    return answer(server, "/talk", **{**asked, **headers})[0]


def key(server: Server) -> dict[str, str]:
    return {"Cookie": f"imapce_{server.port}={cookie_of(server.token)}"}


@pytest.mark.parametrize("path", ["/", "/static/app.js", "/static/app.css", "/favicon.ico", "/upload", "/nowhere"])
def test_nothing_is_shown_without_the_token(server: Server, path: str) -> None:
    status, head = answer(server, path)
    assert status == 403
    assert CSP.lower() in head


@pytest.mark.parametrize("token", ["", "guess", "é"])
def test_a_wrong_token_opens_nothing(server: Server, token: str) -> None:
    assert answer(server, f"/login?token={token.encode().hex() if token == 'é' else token}")[0] == 403
    assert answer(server, "/", Cookie=f"imapce_{server.port}=guess")[0] == 403
    assert answer(server, "/", Cookie=f"imapce_{server.port}={server.token}")[0] == 403


def test_the_link_becomes_a_cookie_named_by_the_port(server: Server) -> None:
    status, head = answer(server, f"/login?token={server.token}")
    assert status == 303
    assert "location: /\r\n" in head + "\r\n"
    assert f"imapce_{server.port}=" in head
    assert "httponly" in head
    assert "samesite=strict" in head


def test_the_page_comes_with_a_strict_policy(server: Server) -> None:
    status, head = answer(server, "/", **key(server))
    assert status == 200
    assert "script-src 'self';" in head
    assert "unsafe" not in head
    assert "nosniff" in head


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1:1", "localhost", ""])
def test_another_name_of_the_server_is_misdirected(server: Server, host: str) -> None:
    assert answer(server, "/", **{**key(server), "Host": host})[0] in (400, 421)
    assert upgrade(server, **{**key(server), "Host": host, "Origin": f"http://{server.address}"}) in (400, 421)
    if host:
        assert answer(server, f"/login?token={server.token}", Host=host)[0] == 421


@pytest.mark.parametrize("origin", ["http://evil.example", "http://127.0.0.1:1", "https://127.0.0.1:{port}", "null"])
def test_other_origins_are_refused(server: Server, origin: str) -> None:
    origin = origin.format(port=server.port)
    assert answer(server, "/", **key(server), Origin=origin)[0] == 403
    assert answer(server, "/upload?name=a.csv", method="POST", body=b"x", **key(server), Origin=origin)[0] == 403
    assert upgrade(server, **key(server), Origin=origin) == 403


def test_a_socket_needs_cookie_and_origin(server: Server) -> None:
    own = f"http://{server.address}"
    assert upgrade(server, Origin=own) == 403
    assert upgrade(server, **key(server)) == 403
    assert upgrade(server, Cookie="imapce_1=x", Origin=own) == 403
    assert upgrade(server, **key(server), Origin=own) == 101


@pytest.mark.parametrize("name", ["..%2f..%2fsession.py", "../session.py", "app.py", "%2e%2e%2fguard.py"])
def test_only_files_of_the_page_are_read(server: Server, name: str) -> None:
    assert answer(server, f"/static/{name}", **key(server))[0] == 404


def test_other_machines_are_not_served_without_a_secret_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("IMAPCE_TOKEN", raising=False)
    assert "--host must be 127.0.0.1 unless a token is given" in refusal("app", "--host", "0.0.0.0", "--no-browser")


def test_a_port_that_is_taken_is_one_sentence() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        told = refusal("app", "--port", taken.getsockname()[1], "--no-browser")
    assert "must be a free place on this machine" in told


def test_a_session_or_colour_without_data_is_refused() -> None:
    assert "belong to DATA" in refusal("app", "--session", "s.imapce", "--no-browser")
