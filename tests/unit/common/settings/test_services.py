"""The slice of each service."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.common.settings import GatewaySettings, OrchestratorSettings, ToolsSettings
from services.common.start import StartError

GATEWAY = {"MY_AGENT_ORCHESTRATOR_ADDRESS": "unix:/run/o", "MY_AGENT_SECRETS_DIR": "/secrets"}


def orchestrator(home: Path, **environ: str) -> OrchestratorSettings:
    return OrchestratorSettings.from_environment(
        {
            "MY_AGENT_HOME": str(home),
            "MY_AGENT_ORCHESTRATOR_LISTEN": "unix:/run/o",
            "MY_AGENT_TOOLS_ADDRESS": "unix:/run/t",
            "MY_AGENT_SECRETS_DIR": "/secrets",
            "MY_AGENT_DATABASE_URL": "postgresql://crew_app:databaseword@/crew",
            **environ,
        }
    )


@pytest.mark.parametrize("settings", [GatewaySettings, ToolsSettings, OrchestratorSettings])
def test_what_is_missing_is_named(
    settings: type[GatewaySettings | ToolsSettings | OrchestratorSettings], tmp_path: Path
) -> None:
    with pytest.raises(StartError, match=r"variable MY_AGENT_\w+ is missing"):
        settings.from_environment({"MY_AGENT_HOME": str(tmp_path)})


@pytest.mark.parametrize(
    ("host", "auth", "required"),
    [
        *[(host, "", False) for host in ("127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost", "LOCALHOST")],
        *[(host, "", True) for host in ("0.0.0.0", "::", "192.168.1.5", "crew.home", "localhost.evil")],
        ("127.0.0.1", "owner", True),
        ("127.0.0.1", "none", False),
    ],
)
@pytest.mark.spec("GTW-023")
def test_a_login_is_asked_where_others_can_reach(host: str, auth: str, required: bool) -> None:
    settings = GatewaySettings.from_environment(GATEWAY | {"MY_AGENT_HOST": host, "MY_AGENT_AUTH": auth})
    assert settings.login_required is required


@pytest.mark.spec("GTW-024")
def test_no_login_on_an_open_address_needs_a_second_word() -> None:
    exposed = GATEWAY | {"MY_AGENT_HOST": "0.0.0.0", "MY_AGENT_AUTH": "none"}
    with pytest.raises(StartError, match="MY_AGENT_AUTH_INSECURE=1"):
        GatewaySettings.from_environment(exposed)
    assert not GatewaySettings.from_environment(exposed | {"MY_AGENT_AUTH_INSECURE": "1"}).login_required


@pytest.mark.spec("GTW-001", "GTW-014", "GTW-267")
def test_the_gateway_s_defaults_and_lists() -> None:
    settings = GatewaySettings.from_environment(GATEWAY)
    assert (settings.host, settings.port, settings.grpc_bind_host, settings.grpc_port) == (
        *("127.0.0.1", 8765),
        *("127.0.0.1", 8766),
    )
    assert settings.allowed_hosts == ()
    settings = GatewaySettings.from_environment(
        GATEWAY
        | {
            "MY_AGENT_ALLOWED_HOSTS": " Crew.Home:8765 ,b.example,,",
            "MY_AGENT_TRUSTED_PROXIES": "127.0.0.1, 10.0.0.0/8, fd00::/8",
        }
    )
    assert settings.allowed_hosts == ("crew.home", "b.example")
    assert [str(network) for network in settings.trusted_proxies] == [
        "127.0.0.1/32",
        "10.0.0.0/8",
        "fd00::/8",
    ]


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        *[("MY_AGENT_PORT", text) for text in ("-1", "65536", "http", "80.5")],
        ("MY_AGENT_AUTH", "off"),
        ("MY_AGENT_TRUSTED_PROXIES", "everybody"),
        ("MY_AGENT_TRUSTED_PROXIES", "10.0.0.1/8"),
        ("MY_AGENT_LANGUAGE", "fr"),
        ("MY_AGENT_AUTH_INSECURE", "perhaps"),
    ],
)
def test_a_wrong_variable_is_named(variable: str, text: str) -> None:
    with pytest.raises(StartError, match=variable):
        GatewaySettings.from_environment(GATEWAY | {variable: text})


@pytest.mark.spec("AGT-011")
def test_the_file_of_keys_is_read_and_the_environment_wins_over_it(tmp_path: Path) -> None:
    (tmp_path / "env").write_text(
        "# keys\nexport OPENROUTER_API_KEY='from the file'\nOTHER=x # why\nMY_AGENT_MAX_STEPS=9\n\n"
    )
    settings = orchestrator(tmp_path, OTHER="from the process")
    assert settings.variables["OPENROUTER_API_KEY"] == "from the file"
    assert settings.variables["OTHER"] == "from the process"
    assert settings.config.values.max_steps == 9
    assert settings.config.source("max_steps") == "env"


@pytest.mark.parametrize("line", ["no assignment", "A='open", "1A=x", "A=1 B=2", "=x"])
def test_a_line_that_is_no_assignment_is_named_by_its_number_alone(tmp_path: Path, line: str) -> None:
    (tmp_path / "env").write_text(f"A=secretword\n{line}\n")
    with pytest.raises(StartError, match="line 2") as caught:
        orchestrator(tmp_path)
    assert "secretword" not in str(caught.value)
    assert line not in str(caught.value)


@pytest.mark.spec("AGT-013")
def test_settings_show_no_secret_and_know_which_values_are(tmp_path: Path) -> None:
    settings = orchestrator(
        tmp_path, MY_AGENT_OWNER_TOKEN="ownerword", OPENAI_API_KEY="keyword", HOME="/home/someone"
    )
    for secret in ("databaseword", "ownerword", "keyword"):
        assert secret not in repr(settings)
        assert secret not in str(settings)
        assert secret in settings.secret_values()
    assert "/home/someone" not in settings.secret_values()


def test_where_workspaces_are(tmp_path: Path) -> None:
    native = orchestrator(tmp_path)
    assert native.workspace_of("default") == tmp_path / "workspace"
    assert native.workspace_of("ann") == tmp_path / "agents" / "ann" / "workspace"
    contained = orchestrator(tmp_path, MY_AGENT_WORKSPACES_DIR="/workspaces")
    assert contained.workspace_of("default") == Path("/workspaces/default")
    assert contained.workspace_of("ann") == Path("/workspaces/ann")
