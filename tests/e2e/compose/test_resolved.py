"""What the shipped files grant, read from the resolved form and not from how they are written."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from services.cli.postgres.binaries import MAJOR
from tests.e2e.compose.engine import COMPOSE_FILE, ROOT, compose_command, resolve
from tests.e2e.compose.resolved import faults, volumes

pytestmark = pytest.mark.skipif(
    not compose_command(), reason="no compose program here: apt install docker-compose"
)


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return resolve(COMPOSE_FILE)


@pytest.mark.spec("FLD-056")
def test_no_service_reaches_the_host_or_another_ones_secrets(document: dict[str, Any]) -> None:
    assert faults(document) == []


@pytest.mark.spec("FLD-056")
@pytest.mark.parametrize(
    "mount",
    [
        "/var/run/docker.sock:/var/run/docker.sock",
        "/run/user/1000/podman/podman.sock:/engine",
        "/:/host:ro",
        "/proc:/host/proc:ro",
        "/proc/1/ns:/ns",
        "secrets-orchestrator:/other:ro",
    ],
)
def test_the_check_itself_finds_what_is_forbidden(document: dict[str, Any], mount: str) -> None:
    spoilt = copy.deepcopy(document)
    spoilt["services"]["tools"].setdefault("volumes", []).append(mount)
    assert len(faults(spoilt)) == 1


@pytest.mark.spec("FLD-056")
def test_the_maker_of_secrets_may_not_have_a_network(document: dict[str, Any]) -> None:
    spoilt = copy.deepcopy(document)
    del spoilt["services"]["prepare"]["network_mode"]
    assert faults(spoilt) == ["prepare has all secrets and a network"]


def test_only_the_gateway_is_published_and_on_loopback(document: dict[str, Any]) -> None:
    published = {
        name: service["ports"] for name, service in document["services"].items() if "ports" in service
    }
    assert set(published) == {"gateway"}
    for port in published["gateway"]:
        address = port.split(":")[0] if isinstance(port, str) else port["host_ip"]
        assert address == "127.0.0.1"


def test_every_service_runs_bare(document: dict[str, Any]) -> None:
    for name, service in document["services"].items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in service["security_opt"], name
        assert service["init"] is True, name
        assert service["mem_limit"], name
        assert service["pids_limit"], name
        # The first id of the pair; prepare hands volumes over and ends.
        root = str(service["user"]).split(":")[0] == "0"
        assert root == (name == "prepare"), name
        assert bool(service.get("cap_add")) == (name == "prepare"), name


@pytest.mark.spec("FLD-052")
def test_the_logs_of_every_container_have_a_limit(document: dict[str, Any]) -> None:
    for name, service in document["services"].items():
        assert service["logging"]["driver"] == "json-file", name
        assert service["logging"]["options"] == {"max-size": "10m", "max-file": "5"}, name


@pytest.mark.spec("FLD-053")
def test_the_default_model_address_is_the_host_as_the_orchestrator_sees_it(document: dict[str, Any]) -> None:
    orchestrator = document["services"]["orchestrator"]
    entries = orchestrator["extra_hosts"]
    pairs = (
        entries.items() if isinstance(entries, dict) else (e.replace("=", ":").split(":", 1) for e in entries)
    )
    assert dict(pairs)["host.docker.internal"] == "host-gateway"
    assert orchestrator["environment"]["OLLAMA_BASE_URL"] == "http://host.docker.internal:11434/v1"


@pytest.mark.spec("TLS-324")
def test_the_tools_service_alone_gets_what_its_sandbox_is_made_of(document: dict[str, Any]) -> None:
    for name, service in document["services"].items():
        loosened = [option for option in service["security_opt"] if "no-new-privileges" not in option]
        assert bool(loosened) == (name == "tools"), name
        assert not any(option in {"seccomp=unconfined", "seccomp:unconfined"} for option in loosened)


def test_each_arrow_has_a_network_of_its_own(document: dict[str, Any]) -> None:
    members: dict[str, set[str]] = {}
    for name, service in document["services"].items():
        for network in service.get("networks", ()):
            members.setdefault(network, set()).add(name)
    assert members == {
        "core": {"gateway", "orchestrator", "cli"},
        "tools": {"orchestrator", "tools"},
        "scripts": {"orchestrator", "script_sandbox"},
        "database": {"orchestrator", "postgres", "migrate", "cli"},
        "models": {"orchestrator"},
        "internet": {"tools"},
        "edge": {"gateway"},
    }
    inside = {name for name, network in document["networks"].items() if (network or {}).get("internal")}
    assert inside == {"core", "tools", "scripts", "database"}


def test_no_environment_holds_a_password(document: dict[str, Any]) -> None:
    for name, service in document["services"].items():
        for variable, value in (service.get("environment") or {}).items():
            assert (
                "://" not in str(value)
                or ":" not in str(value).split("://")[1].split("@")[0]
                or ("@" not in str(value))
            ), f"{name}: {variable}"


def test_the_home_with_its_keys_stays_with_the_orchestrator(document: dict[str, Any]) -> None:
    holders = {
        name
        for name, service in document["services"].items()
        if any(volume.target == "/crew/home" for volume in volumes(service))
    }
    # Besides: what prepares it, what dumps into it before a migration, what backs it up.
    assert holders == {"orchestrator", "prepare", "migrate", "cli"}


@pytest.mark.spec("FLD-048")
def test_the_database_has_the_major_that_the_command_line_speaks() -> None:
    assert f"\nmajor={MAJOR}\n" in (ROOT / "deploy" / "image" / "postgres").read_text()
