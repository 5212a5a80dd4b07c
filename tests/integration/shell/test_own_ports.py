"""The sandbox that keeps the network, and the crew's own ports it closes (tools.md 9.5)."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from services.common.confinement import landlock

from .conftest import Shell

ATTEMPT = """
import ctypes, json, os, socket, sys
port, hosts = int(sys.argv[1]), json.loads(sys.argv[2])
reached = []
def attempt(name, action):
    try:
        action()
    except OSError:
        return
    reached.append(name)
def connect(host, protocol=0, prepare=lambda s: None):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM, protocol) as s:
        s.settimeout(5)
        prepare(s)
        s.connect((host, port))
        s.send(b"x")
def fast_open(host, message):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as s:
        s.settimeout(5)
        if message:
            s.sendmsg([b"x"], [], 0x20000000, (host, port))
        else:
            s.sendto(b"x", 0x20000000, (host, port))
for host in hosts:
    attempt(f"plain {host}", lambda: connect(host))
    for protocol in (262, 132, 256):
        attempt(f"protocol {protocol} {host}", lambda: connect(host, protocol))
    attempt(f"fast open {host}", lambda: fast_open(host, False))
    attempt(f"fast open message {host}", lambda: fast_open(host, True))
    attempt(f"deferred {host}", lambda: connect(host, 0, lambda s: s.setsockopt(6, 30, 1)))
    attempt(f"layered {host}", lambda: connect(host, 0, lambda s: s.setsockopt(6, 31, b"smc")))
attempt("smc family", lambda: socket.socket(43, socket.SOCK_STREAM))
attempt("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 6))
attempt("packet", lambda: socket.socket(17, socket.SOCK_RAW, 3))
if ctypes.CDLL(None).syscall(425, 1, ctypes.create_string_buffer(120)) != -1:
    reached.append("io_uring")
print(json.dumps(reached))
"""


@dataclass
class Listener:
    port: int
    accepted: int = 0


def addresses_of_machine() -> list[str]:
    """An address other than loopback, if there is one: no packet is sent to find it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return []
        return [probe.getsockname()[0]]


@pytest.fixture
def listener() -> Iterator[Listener]:
    """Listens at every address of the machine, in both families."""
    server = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    found = Listener(server.getsockname()[1])

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            found.accepted += 1
            connection.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield found
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join(10)


def hosts() -> list[str]:
    return ["127.0.0.1", "127.0.0.53", "::1", "::ffff:127.0.0.1", "localhost", *addresses_of_machine()]


@pytest.mark.spec("TLS-315", "TLS-317", "TLS-318", "TLS-319", "TLS-429")
async def test_a_closed_port_cannot_be_reached_at_any_address_by_any_way(
    networked: Shell, listener: Listener
) -> None:
    shell = networked.granted(closed_ports=[1, listener.port, 65535])
    result = await shell.python(ATTEMPT, listener.port, json.dumps(hosts()))
    assert json.loads(result.text.splitlines()[0]) == []
    assert listener.accepted == 0


@pytest.mark.spec("TLS-279", "TLS-318")
async def test_every_other_port_is_as_before(networked: Shell, listener: Listener) -> None:
    shell = networked.granted(closed_ports=[listener.port + 1 if listener.port < 65535 else 1024])
    result = await shell.python(ATTEMPT, listener.port, json.dumps(hosts()))
    reached = json.loads(result.text.splitlines()[0])
    assert [name for name in reached if name.startswith("plain")] == [f"plain {host}" for host in hosts()]
    assert not [name for name in reached if name.startswith(("protocol", "fast", "layered", "smc", "raw"))]


@pytest.mark.spec("TLS-279")
async def test_with_the_network_kept_listening_and_datagrams_work_and_writes_do_not(networked: Shell) -> None:
    source = (
        "import socket\n"
        "s = socket.create_server(('127.0.0.1', 0))\n"
        "socket.create_connection(s.getsockname()).close()\n"
        "u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(('127.0.0.1', 0))\n"
        "u.sendto(b'x', u.getsockname()); print(u.recv(1))\n"
        "open('stopped', 'w')\n"
    )
    result = await networked.python(source)
    assert "b'x'" in result.text
    assert result.is_error
    assert not (networked.workspace / "stopped").exists()


@pytest.mark.spec("TLS-299")
async def test_x_displays_over_tcp_are_closed(networked: Shell) -> None:
    source = (
        "import errno, socket\n"
        "for port in (6000, 6001, 6063):\n"
        "    s = socket.socket()\n"
        "    print(errno.errorcode[s.connect_ex(('127.0.0.1', port))])\n"
    )
    assert (await networked.python(source)).text.split()[:3] == ["EACCES"] * 3


@pytest.mark.spec("TLS-321")
async def test_where_ports_cannot_be_closed_the_network_keeping_sandbox_is_refused(
    networked: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landlock, "abi", lambda: 3)
    report = await networked.sandbox.probe()
    try:
        assert not report.keeps_network
        refused = await networked.result("touch out/ran")
        assert refused.is_error
        assert "Refused" in refused.text
        assert not (networked.workspace / "out/ran").exists()
    finally:
        monkeypatch.undo()
        await networked.sandbox.probe()
    assert os.path.exists(networked.workspace)
