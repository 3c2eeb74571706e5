"""The local server: who knows the address sees the page, nobody else anything, and nothing brings it down."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack, closing

import numpy as np
import pytest
from explored import images, moons, network

import inscape
from inscape.errors import InscapeError
from inscape.explorer.messages import unpacked
from inscape.explorer.server import LONGEST_REQUEST, MOST_PAGES

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
client = pytest.importorskip("websockets.sync.client")
exceptions = pytest.importorskip("websockets.exceptions")


@pytest.fixture(scope="module")
def served():
    x, y = images()
    with inscape.explore(network(0), x, y, title="<script>evil()</script>") as explorer:
        yield explorer


def parts(explorer):
    host, port, token = re.fullmatch(r"http://([\d.]+):(\d+)/([\w-]+)/", explorer.url).groups()
    return host, int(port), token


def get(explorer, path, method="GET", **headers):
    host, port, _ = parts(explorer)
    with closing(http.client.HTTPConnection(host, port, timeout=30)) as connection:
        connection.putrequest(method, path, skip_host=True)
        for name, value in ({"host": f"{host}:{port}"} | headers).items():
            connection.putheader(name, value)
        connection.endheaders()
        with closing(connection.getresponse()) as reply:
            return reply.status, dict(reply.getheaders()), reply.read().decode()


def talk(explorer, token=None, origin=None):
    address, port, known = parts(explorer)
    return client.connect(
        f"ws://{address}:{port}/{token or known}/socket",
        origin=origin or f"http://{address}:{port}",
        max_size=None,
        proxy=None,
        open_timeout=120,  # loops that are compiled in the same process can keep it busy for long
        ping_interval=None,
    )


def ask(socket, request):
    socket.send(json.dumps(request))
    while True:
        header, arrays = unpacked(socket.recv(timeout=240))
        if header["reply"] != "progress" and header.get("is_last") is not False:
            return header, arrays


def is_alive(explorer):
    with talk(explorer) as socket:
        return ask(socket, {"ask": "hello"})[0]["reply"] == "hello"


def test_the_page_and_its_files_are_below_the_token(served):
    host, port, token = parts(served)
    assert host == "127.0.0.1"
    assert len(token) >= 32
    status, headers, text = get(served, f"/{token}/")
    assert status == 200
    assert "&lt;script&gt;evil()" in text
    assert "<script>evil" not in text
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    for name, kind in (("viewer.js", "text/javascript"), ("viewer.css", "text/css")):
        status, headers, text = get(served, f"/{token}/{name}")
        assert (status, headers["content-type"].split(";")[0]) == (200, kind)
        assert len(text) > 5000
    assert get(served, f"/{token}/", host=f"localhost:{port}")[0] == 200


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/", 404),
        ("/{wrong}/", 403),
        ("/{wrong}/viewer.js", 403),
        ("/{token}/../../../../etc/passwd", 404),
        ("/{token}/%2e%2e/%2e%2e/%2e%2e/etc/passwd", 404),
        ("/{token}//etc/passwd", 404),
        ("/{token}/server.py", 404),
        ("/{token}/viewer/../server.py", 404),
        ("/{token}/viewer.js%00.html", 404),
    ],
)
def test_nothing_else_is_there(served, path, status):
    _, _, token = parts(served)
    found, headers, text = get(served, path.format(token=token, wrong="A" * len(token)))
    assert found == status
    assert "root:" not in text
    assert "import" not in text
    assert headers["cache-control"] == "no-store"


def test_other_methods_and_hosts_are_refused(served):
    _, port, token = parts(served)
    assert get(served, f"/{token}/", method="POST")[0] == 405
    for host in ("evil.example", f"evil.example:{port}", f"127.0.0.1.evil.example:{port}", "127.0.0.1", ""):
        assert get(served, f"/{token}/", host=host)[0] in (400, 421)


@pytest.mark.parametrize(
    "wrong",
    [
        {"token": "A" * 32},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
    ],
)
def test_a_socket_is_for_this_page_alone(served, wrong):
    with pytest.raises(exceptions.InvalidStatus, match="403"), talk(served, **wrong):
        pass
    assert is_alive(served)


def test_a_socket_of_another_host_or_without_origin_is_refused(served):
    _, port, token = parts(served)
    upgrade = {
        "connection": "Upgrade",
        "upgrade": "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    evil = f"evil.example:{port}"
    assert get(served, f"/{token}/socket", **upgrade)[0] == 403
    assert get(served, f"/{token}/socket", **upgrade, origin=f"http://{evil}", host=evil)[0] == 403
    assert get(served, f"/{token}/socket", **upgrade, origin=f"http://127.0.0.1:{port}", host=evil)[0] == 403


def test_an_oversize_message_closes_the_socket_and_no_more(served):
    with talk(served) as socket:
        assert ask(socket, {"ask": "hello", "filling": "x" * (LONGEST_REQUEST - 100)})[0]["reply"] == "hello"
        socket.send("x" * (LONGEST_REQUEST + 100))
        with pytest.raises(exceptions.ConnectionClosed, match="1009"):
            socket.recv(timeout=120)
    assert is_alive(served)


@pytest.mark.parametrize(
    "text", ["", "{", "[" * 60000, "null", '{"ask": "plane", "model": 1e999}', b"\x00\xff"]
)
def test_what_is_no_request_is_answered_or_dropped(served, text):
    with talk(served) as socket:
        socket.send(text)
        try:
            assert unpacked(socket.recv(timeout=120))[0]["reply"] == "error"
        except exceptions.ConnectionClosed:
            assert isinstance(text, bytes)
    assert is_alive(served)


def test_a_thousand_requests_at_once_are_answered_by_the_last(served):
    points = [[[row, 1.0]] for row in (0, 1, 2)]
    plane = {"frame": points, "corners": points}
    with talk(served) as socket:
        for k in range(1000):
            socket.send(
                json.dumps({"ask": "plane", "id": k, "plane": plane, "window": [-1, 1 + k / 1000, -1, 1]})
            )
        answered = []
        while 999 not in answered:
            header, _ = unpacked(socket.recv(timeout=240))
            if header["reply"] == "plane" and header["is_last"]:
                answered.append(header["id"])
        assert answered == sorted(answered)
        assert len(answered) < 1000
    assert is_alive(served)


def test_a_thousand_connections_are_served_or_refused(served):
    _, _, token = parts(served)
    found = []

    def knock():
        try:
            found.append(get(served, f"/{token}/viewer.css")[0])
        except OSError:
            found.append("refused")

    for _ in range(20):
        threads = [threading.Thread(target=knock) for _ in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(found) == 1000
    assert set(found) <= {200, 503, "refused"}
    assert 200 in found
    assert is_alive(served)


def test_more_pages_than_there_is_room_for_are_told_so(served):
    with ExitStack() as stack:
        sockets = [stack.enter_context(talk(served)) for _ in range(MOST_PAGES)]
        assert all(ask(socket, {"ask": "hello"})[0]["reply"] == "hello" for socket in sockets)
        with talk(served) as late, pytest.raises(exceptions.ConnectionClosed, match="too many pages"):
            late.recv(timeout=120)
    assert is_alive(served)


def test_a_model_that_fails_fails_on_the_page_alone():
    def model(x):
        if (x[:, 0] > 0.2).any():
            raise RuntimeError("no such weight")
        return np.c_[x[:, 0], 1 - x[:, 0]]

    with inscape.explore(model, *moons()) as explorer, talk(explorer) as socket:
        header, _ = ask(socket, {"ask": "plane", "window": [0.0, 1.0, 0.0, 1.0], "id": 7})
        assert (header["reply"], header["to"], header["id"]) == ("error", "plane", 7)
        assert "no such weight" in header["message"]
        assert ask(socket, {"ask": "plane", "window": [-1.0, 0.0, 0.0, 1.0]})[0]["reply"] == "plane"


def test_a_port_that_is_taken_is_an_error(served):
    _, port, _ = parts(served)
    with pytest.raises(InscapeError, match=f"cannot listen on port {port} of 127.0.0.1.*give another --port"):
        inscape.explore(network(0), *images()).start(port=port)


@pytest.mark.slow
@pytest.mark.usefixtures("interruptible")
def test_the_command_prints_the_address_and_ends_with_ctrl_c(tmp_path):
    x, y = moons()
    np.savez(tmp_path / "data.npz", x=x, y=y)
    (tmp_path / "mine.py").write_text(
        "import torch\n"
        "def net():\n"
        "    torch.manual_seed(0)\n"
        "    return torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))\n"
    )
    command = [sys.executable, "-m", "inscape", "explore", "mine:net", "--data", "data.npz", "--no-browser"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    )
    line = process.stdout.readline().strip()
    _, host, path = re.fullmatch(r"(http)://(127\.0\.0\.1:\d+)(/[\w-]+/)", line).groups()
    connection = http.client.HTTPConnection(host, timeout=30)
    connection.request("GET", path)
    assert connection.getresponse().status == 200
    connection.close()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=240)
    assert (process.returncode, out) == (0, "")
    assert "Traceback" not in err
