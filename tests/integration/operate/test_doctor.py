"""``crew doctor``: what it finds, and that it always says what to do."""

from __future__ import annotations

import http.server
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from services.cli.doctor.crew import database, folders, misspelt
from services.cli.doctor.findings import Finding
from services.cli.doctor.machine import machine
from services.cli.doctor.network import models, proxy, public_name
from services.cli.home import Layout
from services.cli.texts import texts
from services.common.settings import CrewConfig
from tests.integration.operate.test_backup import crew

ROOT = Path(__file__).parents[3]


def found(findings: Iterator[Finding]) -> dict[str, str]:
    return {finding.key: finding.state for finding in findings}


@contextmanager
def answering(status: int) -> Iterator[tuple[str, list[http.server.BaseHTTPRequestHandler]]]:
    """An HTTP server that answers everything with one status, and what it was asked."""
    asked: list[http.server.BaseHTTPRequestHandler] = []

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self)
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()


@pytest.mark.spec("FLD-050")
def test_everything_that_can_fail_says_what_to_do() -> None:
    for path in (ROOT / "services/cli").glob("doctor/*.py"):
        for key in re.findall(r'\bbad\(\s*"([a-z_]+)"', path.read_text()):
            # A refusal of the start is a whole sentence with its advice.
            assert key == "folder" or texts().has(f"doctor.{key}_do"), f"{path.name}: {key}"


@pytest.mark.spec("FLD-050")
def test_the_page_of_a_new_machine_is_whole_and_its_exit_code_counts(tmp_path: Path) -> None:
    fine = crew("doctor", MY_AGENT_HOME=str(tmp_path / "home"), MY_AGENT_ROUTES="fake:echo")
    for title in ("Machine", "Home", "Settings", "Database", "Models", "Services"):
        assert f"{title}\n" in fine.stdout
    assert fine.returncode == (1 if "✗" in fine.stdout else 0)
    missing = crew(
        "doctor",
        MY_AGENT_HOME=str(tmp_path / "home"),
        MY_AGENT_ROUTES="openrouter:x/y",
        OPENROUTER_API_KEY="",
        MY_AGENT_LANGUAGE="vi",
    )
    assert missing.returncode == 1
    assert "✗ OPENROUTER_API_KEY chưa được đặt" in missing.stdout
    assert "→ Hãy ghi OPENROUTER_API_KEY" in missing.stdout
    assert not (tmp_path / "home").exists()


@pytest.mark.spec("AGT-013")
def test_a_key_is_said_to_be_there_and_never_shown(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "env").write_text("OPENROUTER_API_KEY='sk-or-shown-to-nobody'\n")
    (home / "env").chmod(0o644)
    done = crew("doctor", MY_AGENT_HOME=str(home), MY_AGENT_ROUTES="openrouter:x/y")
    assert "OPENROUTER_API_KEY is set" in done.stdout
    assert "sk-or-shown-to-nobody" not in done.stdout + done.stderr
    assert f"→ chmod 600 '{home / 'env'}'" in done.stdout
    (home / "env").chmod(0o600)
    assert "chmod 600" not in crew("doctor", MY_AGENT_HOME=str(home)).stdout


def test_a_broken_config_is_a_line_and_the_page_goes_on(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("max_step: 1\n")
    done = crew("doctor", MY_AGENT_HOME=str(tmp_path))
    assert done.returncode == 1
    assert "did you mean max_steps?" in done.stdout
    assert "Services" in done.stdout


@pytest.mark.parametrize(
    ("address", "key"),
    [
        *[(address, "dns_fake") for address in ("198.18.0.1", "198.19.255.255")],
        *[
            (address, "dns_private")
            for address in ("10.1.2.3", "127.0.0.1", "100.64.0.1", "fd00::1", "fe80::1")
        ],
        *[(address, "dns") for address in ("104.18.2.115", "2606:4700::1")],
    ],
)
@pytest.mark.spec("FLD-050")
def test_a_public_name_with_an_address_that_is_not_is_told(
    monkeypatch: pytest.MonkeyPatch, address: str, key: str
) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    answer = [(family, socket.SOCK_STREAM, 6, "", (address, 443))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answer)
    finding = public_name("models.example")
    assert finding.key == key
    if key != "dns":
        assert finding.state == "bad"
        assert address in finding.lines()[0]
    if key == "dns_fake":
        assert "198.18.0.0/15" in finding.lines()[0]


def test_a_name_that_does_not_resolve_is_told() -> None:
    assert public_name("no.such.name.invalid").key == "dns_failed"


@pytest.mark.spec("FLD-053")
def test_a_local_model_server_that_refuses_is_told_with_the_bridge(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        config = CrewConfig(routes=("ollama:x",))
        assert found(models(config, {"OLLAMA_BASE_URL": url})) == {"server": "good"}
    [finding] = models(config, {"OLLAMA_BASE_URL": url})
    assert (finding.key, finding.state) == ("server_refused", "bad")
    assert "must listen on the bridge's address" in finding.lines()[1]


@pytest.mark.parametrize(
    ("status", "key", "state"),
    [(200, "url", "good"), (503, "url", "good"), (403, "url_refused", "bad"), (404, "url_other", "bad")],
)
@pytest.mark.spec("FLD-050")
def test_an_address_is_tried_as_a_browser_would(status: int, key: str, state: str) -> None:
    with answering(status) as (url, asked):
        assert found(proxy(url)) == {key: state}
        [request] = asked
        assert request.path == "/api/health"
        assert request.headers["Origin"] == url
        assert request.headers["Host"] == url.removeprefix("http://")


@pytest.mark.parametrize("url", ["crew.example", "ftp://crew.example", "", "http://"])
def test_what_is_no_address_is_told(url: str) -> None:
    assert found(proxy(url)) == {"url_wrong": "bad"}


def test_an_address_where_nobody_is(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert found(proxy(f"http://127.0.0.1:{port}")) == {"url_unreachable": "bad"}


def test_variables_that_nothing_reads_are_named_with_what_was_meant() -> None:
    lines = [
        line
        for finding in misspelt(
            {"MY_AGENT_MAX_STEP": "1", "MY_AGENT_QQQ": "1", "MY_AGENT_PORT": "1", "PATH": ""}
        )
        for line in finding.lines()
    ]
    assert "MY_AGENT_MAX_STEP is set" in lines[0]
    assert "MY_AGENT_MAX_STEPS" in lines[1]
    assert "MY_AGENT_QQQ" in lines[2]
    assert not [line for line in lines if "MY_AGENT_PORT " in line]


@pytest.mark.spec("FLD-048")
def test_a_database_of_another_major_is_told(tmp_path: Path) -> None:
    layout = Layout(tmp_path, tmp_path / "run")
    assert found(database(layout)) == {"postgres": "good", "no_database": "note"}
    (tmp_path / "postgres").mkdir()
    (tmp_path / "postgres" / "PG_VERSION").write_text("16\n")
    findings = list(database(layout))
    assert findings[-1].state == "bad"
    assert "Postgres 16" in findings[-1].lines()[0]


def test_the_machine_names_its_sandbox_and_the_home_its_owner(tmp_path: Path) -> None:
    keys = found(machine(tmp_path))
    assert keys["python"] == "good"
    assert len({"sandbox_bubblewrap", "sandbox_landlock", "sandbox_none", "sandbox_macos"} & set(keys)) == 1
    (tmp_path / "workspace").mkdir()
    lines = [line for finding in folders(Layout(tmp_path, tmp_path / "run")) for line in finding.lines()]
    owner = f"{tmp_path.stat().st_uid}:{tmp_path.stat().st_gid}"
    assert [line for line in lines if str(tmp_path / "workspace") in line and owner in line]
