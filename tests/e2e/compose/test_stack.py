"""The shipped deployment, used as its owner would and probed as an intruder would."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.e2e.compose.engine import SERVING, Stack, compose_command, docker, wait_until
from tests.e2e.compose.person import PASSWORD, Owner, set_up_token, waiting

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def owner(deployment: Stack) -> Owner:
    wait_until(lambda: "#/setup/" in deployment.logs("gateway"), 60, lambda: deployment.logs("gateway"))
    owner = Owner(deployment.url)
    owner.set_up(set_up_token(deployment.logs("gateway")))
    return owner


def test_the_first_link_names_the_port_that_is_published(deployment: Stack, owner: Owner) -> None:
    assert f"{deployment.url}/#/setup/" in deployment.logs("gateway")


@pytest.mark.spec("FLD-055")
def test_every_service_comes_up_healthy(deployment: Stack) -> None:
    answer = httpx.get(f"{deployment.url}/api/health", trust_env=False)
    assert answer.status_code == 200
    assert answer.json() == {"status": "ok"}
    assert {name: deployment.health(name) for name in SERVING} == dict.fromkeys(SERVING, "healthy")


def test_nobody_gets_in_without_the_owners_password(deployment: Stack, owner: Owner) -> None:
    with Owner(deployment.url) as stranger:
        assert stranger.http.get("/api/conversations").status_code == 401
        assert stranger.http.post("/api/auth/login", json={"password": "guess"}).status_code == 401


def test_an_approved_call_writes_into_the_workspace_volume(deployment: Stack, owner: Owner) -> None:
    conversation = owner.converse("write")
    owner.send(conversation, '/tool workspace_write {"path": "notes.md", "content": "from a container"}')
    (request,) = waiting(owner)
    assert request["tool"] == "workspace_write"
    missing = deployment.inside("tools", "cat", "/workspaces/default/notes.md", check=False)
    assert missing.returncode != 0
    owner.decide(request["id"], approve=True)
    wait_until(
        lambda: (
            deployment.inside("tools", "test", "-f", "/workspaces/default/notes.md", check=False).returncode
            == 0
        ),
        30,
        lambda: str(owner.get(f"/api/conversations/{conversation}")),
    )
    shown = deployment.inside("tools", "cat", "/workspaces/default/notes.md").stdout
    assert shown.strip() == "from a container"


@pytest.mark.spec("FLD-054")
def test_the_file_is_the_crews_and_shared_with_its_group(deployment: Stack, owner: Owner) -> None:
    shown = deployment.inside(
        "tools", "stat", "-c", "%u:%g %a", "/workspaces/default/notes.md"
    ).stdout.strip()
    assert shown == "1000:1000 664"


def test_the_shell_runs_in_a_working_sandbox_and_says_which(deployment: Stack, owner: Owner) -> None:
    hosts = {host["name"]: host for host in owner.get("/api/connections")["hosts"]}
    assert hosts["tools"]["reachable"] is True
    # Compose 1 cannot ask for what bubblewrap needs; on such an old one the fallback has to hold.
    form = "bubblewrap" if len(compose_command()) > 1 else "Landlock"
    assert hosts["tools"]["isolation"] == "container"
    assert form in hosts["tools"]["isolation_note"], hosts["tools"]


@pytest.mark.parametrize("service", SERVING)
def test_containers_run_bare(deployment: Stack, service: str) -> None:
    host = deployment.inspect(service)["HostConfig"]
    assert host["ReadonlyRootfs"] is True
    assert host["CapDrop"] == ["ALL"]
    assert not host["CapAdd"]
    assert host["Privileged"] is False
    assert host["Memory"] > 0
    assert host["PidsLimit"] > 0
    assert host["LogConfig"]["Config"] == {"max-size": "10m", "max-file": "5"}
    # What the kernel says of the process itself, not what was asked for.
    status = deployment.inside(service, "cat", "/proc/1/status").stdout
    for line in status.splitlines():
        name, _, value = line.partition(":")
        if name in {"Uid", "Gid"}:
            assert "0" not in value.split(), line
        elif name in {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}:
            assert int(value, 16) == 0, line
        elif name == "NoNewPrivs":
            assert value.strip() == "1"
        elif name == "Seccomp":
            assert value.strip() == "2"
    written = deployment.inside(service, "sh", "-c", "echo x >/opt/x", check=False)
    assert "Read-only file system" in written.stderr


def test_no_compiler_and_no_installer_is_left_in_an_image(deployment: Stack) -> None:
    for service in SERVING:
        found = deployment.inside(service, "sh", "-c", "command -v gcc cc ld make pip uv || true").stdout
        assert found.strip() == "", f"{service}: {found}"


def test_only_the_gateway_is_published_on_loopback(deployment: Stack) -> None:
    for service in SERVING:
        ports = deployment.inspect(service)["NetworkSettings"]["Ports"] or {}
        bound = {
            (entry["HostIp"], entry["HostPort"]) for entries in ports.values() for entry in entries or ()
        }
        if service == "gateway":
            assert bound == {("127.0.0.1", str(deployment.port)), ("127.0.0.1", str(deployment.grpc_port))}
        else:
            assert bound == set()


def _addresses(stack: Stack, service: str) -> list[str]:
    networks = stack.inspect(service)["NetworkSettings"]["Networks"]
    return [network["IPAddress"] for network in networks.values()]


def _reached(stack: Stack, service: str, targets: Iterable[tuple[str, int]]) -> set[tuple[str, int]]:
    """Which of these the service can open a connection to, all tried at once."""

    def opens(target: tuple[str, int]) -> bool:
        # bash's own sockets: no image has a program for this.
        command = f"exec 3<>/dev/tcp/{shlex.quote(target[0])}/{target[1]}"
        return stack.inside(service, "timeout", "3", "bash", "-c", command, check=False).returncode == 0

    targets = list(targets)
    with ThreadPoolExecutor(len(targets)) as attempts:
        return {
            target for target, opened in zip(targets, attempts.map(opens, targets), strict=True) if opened
        }


def test_each_service_reaches_the_next_one(deployment: Stack) -> None:
    # The same question where the answer is yes, so that a no means something.
    for service, target in (
        ("gateway", ("orchestrator-core", 7001)),
        ("orchestrator", ("postgres", 5432)),
        ("orchestrator", ("tools-host", 7002)),
    ):
        assert _reached(deployment, service, [target]) == {target}


def test_the_tools_service_reaches_neither_database_nor_orchestrator_nor_gateway(deployment: Stack) -> None:
    targets = [(host, 5432) for host in ("postgres", *_addresses(deployment, "postgres"))]
    names = ("orchestrator", "orchestrator-core")
    targets += [(host, 7001) for host in (*names, *_addresses(deployment, "orchestrator"))]
    targets += [(host, 8765) for host in ("gateway", *_addresses(deployment, "gateway"))]
    assert _reached(deployment, "tools", targets) == set()


def test_the_script_sandbox_reaches_nothing(deployment: Stack) -> None:
    targets = [(host, 5432) for host in ("postgres", *_addresses(deployment, "postgres"))]
    names = ("orchestrator", "orchestrator-core")
    targets += [(host, 7001) for host in (*names, *_addresses(deployment, "orchestrator"))]
    targets += [(host, 7002) for host in ("tools", "tools-host", *_addresses(deployment, "tools"))]
    targets += [(host, 8765) for host in ("gateway", *_addresses(deployment, "gateway"))]
    assert _reached(deployment, "script_sandbox", targets) == set()


def test_the_gateway_reaches_the_orchestrator_alone(deployment: Stack) -> None:
    targets = [(host, 5432) for host in ("postgres", *_addresses(deployment, "postgres"))]
    targets += [(host, 7002) for host in ("tools", "tools-host", *_addresses(deployment, "tools"))]
    assert _reached(deployment, "gateway", targets) == set()


@pytest.mark.spec("FLD-056")
def test_each_service_holds_its_own_secrets_alone(deployment: Stack) -> None:
    held = {
        service: set(deployment.inside(service, "ls", "/secrets").stdout.split())
        for service in ("gateway", "orchestrator", "tools", "script_sandbox")
    }
    assert held["gateway"] == {"gateway-to-orchestrator.token"}
    assert held["tools"] == {"orchestrator-to-tools.sha256"}
    assert held["script_sandbox"] == {"orchestrator-to-script_sandbox.sha256"}
    assert "orchestrator-to-tools.token" in held["orchestrator"]
    for service in ("gateway", "tools", "script_sandbox"):
        assert deployment.inside(service, "ls", "/crew/home", check=False).returncode != 0


def test_no_secret_is_in_a_log_an_environment_or_an_argument(deployment: Stack, owner: Owner) -> None:
    token = owner.http.post("/api/auth/tokens", json={"name": "probe", "scopes": ["read"]}).json()["token"]
    assert httpx.get(
        f"{deployment.url}/api/conversations", headers={"Authorization": f"Bearer {token}"}, trust_env=False
    ).is_success
    secrets = {PASSWORD, token, *owner.http.cookies.values()}
    for service in ("gateway", "orchestrator", "postgres"):
        for file in deployment.inside(service, "sh", "-c", "ls /secrets/*").stdout.split():
            if not file.endswith(".sha256"):
                secrets.add(deployment.inside(service, "cat", file).stdout.strip().rpartition(":")[2])
    assert len(secrets) >= 8
    said = deployment.logs()
    seen = [docker("inspect", deployment.container(service)).stdout for service in SERVING]
    arguments = [
        docker("top", deployment.container(service), "-eo", "pid,args").stdout for service in SERVING
    ]
    for text in (said, *seen, *arguments):
        assert [secret[:4] + "…" for secret in secrets if secret in text] == []


def test_a_fresh_start_keeps_everything(deployment: Stack, owner: Owner) -> None:
    conversation = owner.converse("kept")
    owner.send(conversation, "remember me")
    before = owner.get(f"/api/conversations/{conversation}")
    deployment.down()
    assert all(deployment.container(service) == "" for service in SERVING)
    deployment.up()
    # Session, conversation and file are the old ones.
    assert owner.get(f"/api/conversations/{conversation}") == before
    shown = deployment.inside("tools", "cat", "/workspaces/default/notes.md").stdout
    assert shown.strip() == "from a container"
    with Owner(deployment.url) as again:
        again.log_in()
        assert again.get("/api/auth/session")["authenticated"] is True


@pytest.mark.spec("FLD-047")
def test_a_backup_of_the_running_crew_becomes_another_one(
    deployment: Stack, owner: Owner, tmp_path: Path
) -> None:
    tmp_path.chmod(0o777)
    for parent in tmp_path.parents[:2]:
        parent.chmod(0o755)
    archive = ("run", "--rm", "-v", f"{tmp_path}:/backup", "cli")
    conversation = owner.converse("moves")
    owner.send(conversation, "take me along")
    before = owner.get(f"/api/conversations/{conversation}")
    deployment.compose(*archive, "backup", "/backup/crew.tar")
    other = Stack(f"{deployment.project}b", deployment.environ)
    try:
        other.compose("up", "-d", "--no-build", "postgres")
        other.compose(*archive, "restore", "/backup/crew.tar")
        other.up()
        with Owner(other.url) as again:
            again.log_in()
            assert again.get(f"/api/conversations/{conversation}") == before
        shown = other.inside("tools", "cat", "/workspaces/default/notes.md").stdout
        assert shown.strip() == "from a container"
    finally:
        other.down(volumes=True)


@pytest.mark.parametrize("service", ["tools", "script_sandbox", "orchestrator", "gateway"])
def test_a_killed_service_comes_back_and_is_used_again(deployment: Stack, owner: Owner, service: str) -> None:
    pid = deployment.inspect(service)["State"]["Pid"]
    before = deployment.inspect(service)["RestartCount"]
    # From inside, as a crash would: a kill by the engine counts as the owner's wish.
    assert pid > 0
    os.kill(pid, 9)
    wait_until(lambda: deployment.inspect(service)["RestartCount"] > before, 30)
    wait_until(lambda: deployment.health(service) == "healthy", 90, lambda: deployment.logs(service)[-3000:])

    def answers() -> bool:
        try:
            return bool(owner.get("/api/health")["status"] == "ok")
        except httpx.HTTPError:
            return False

    wait_until(answers, 60, lambda: deployment.logs()[-3000:])
    events = owner.send(owner.converse(f"after {service}"), "still there?")
    assert "done" in {name for name, _ in events}


def test_the_log_of_the_database_names_no_failure(deployment: Stack) -> None:
    log = deployment.logs("postgres")
    assert re.findall(r"\b(?:FATAL|PANIC)\b.*", log) == []
