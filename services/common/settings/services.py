"""The slice of the settings that each service gets, read from the environment it was given.

Only the orchestrator is told where the home is, the database's address and the keys. All of these
are deployment variables and never keys of ``config.yaml`` (AGT-019).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    IPvAnyNetwork,
    SecretStr,
    ValidationError,
)

from services.common.settings.config import comma_list, switch
from services.common.settings.loading import LoadedConfig, load_config, problem_of
from services.common.start import StartError
from services.common.variables import Variables, home_of, read_env_file
from services.common.wording import Locale

Port = Annotated[int, Field(ge=0, le=65535)]
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL")
# host:port or unix:/path.
Address = Annotated[str, Field(min_length=1, max_length=300)]


class _FromEnvironment(BaseModel):
    """A field ``tools_address`` is the variable ``MY_AGENT_TOOLS_ADDRESS``; empty counts as unset."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    @classmethod
    def _read(cls, environ: Mapping[str, str], **given: object) -> Self:
        raw: dict[str, object] = dict(given)
        for name in cls.model_fields:
            text = environ.get(f"MY_AGENT_{name.upper()}", "").strip()
            if name not in raw and text:
                raw[name] = text
        try:
            return cls.model_validate(raw)
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            raise StartError(
                "error.settings.variable",
                variable=f"MY_AGENT_{str(fault['loc'][0]).upper()}",
                problem=problem_of(fault),
            ) from None

    @property
    def locale(self) -> Locale:
        """The language of what the service says by itself."""
        return "en"

    def secret_values(self) -> list[str]:
        """Values that may appear in no log line."""
        return []


class ToolsSettings(_FromEnvironment):
    """What the tools service is told. It knows no home, no database and no key."""

    tools_listen: Address
    secrets_dir: Path
    # What has to outlive a restart: which calls were begun and how they ended.
    tools_state_dir: Path
    run_dir: Path | None = None
    language: Locale = "en"

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Self:
        """Read the slice.

        Raises:
            StartError: A variable is missing or has no allowed value.
        """
        return cls._read(environ)

    @property
    def locale(self) -> Locale:
        """As configured."""
        return self.language


class ScriptSandboxSettings(_FromEnvironment):
    """What the script sandbox is told. It knows no home, no database, no key and no other service."""

    script_sandbox_listen: Address
    secrets_dir: Path
    # Programs can be run from it: the launcher of workers is written there. None: a temporary folder.
    run_dir: Path | None = None
    language: Locale = "en"

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Self:
        """Read the slice.

        Raises:
            StartError: A variable is missing or has no allowed value.
        """
        return cls._read(environ)

    @property
    def locale(self) -> Locale:
        """As configured."""
        return self.language


class GatewaySettings(_FromEnvironment):
    """What the gateway is told. It knows no home, no database and no key."""

    orchestrator_address: Address
    secrets_dir: Path
    host: str = "127.0.0.1"
    port: Port = 8765
    grpc_host: str = ""
    grpc_port: Port = 8766
    # None: decided by what is bound (GTW-023), see `login_required`.
    auth: Literal["owner", "none"] | None = None
    auth_insecure: bool = False
    # Lower case, without port (GTW-014).
    allowed_hosts: tuple[str, ...] = ()
    # Peers whose forwarding headers are believed (GTW-021).
    trusted_proxies: tuple[IPvAnyNetwork, ...] = ()
    grpc_reflection: bool = False
    grpc_insecure: bool = False
    grpc_tls_cert: Path | None = None
    grpc_tls_key: Path | None = None
    web_url: str = ""
    # "address:port" of the machine where a container's HTTP port is published; empty outside of one.
    published_address: Annotated[str, Field(max_length=300, pattern=r"^(\S*:[1-9]\d{0,4})?$")] = ""
    language: Locale = "en"

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Self:
        """Read the slice.

        Raises:
            StartError: A variable is missing or has no allowed value, or no login is asked on an
                address that others can reach (GTW-024).
        """
        settings = cls._read(
            environ,
            auth_insecure=switch(environ.get("MY_AGENT_AUTH_INSECURE", "")),
            grpc_reflection=switch(environ.get("MY_AGENT_GRPC_REFLECTION", "")),
            grpc_insecure=switch(environ.get("MY_AGENT_GRPC_INSECURE", "")),
            allowed_hosts=[
                _without_port(name).lower() for name in comma_list(environ.get("MY_AGENT_ALLOWED_HOSTS", ""))
            ],
            trusted_proxies=comma_list(environ.get("MY_AGENT_TRUSTED_PROXIES", "")),
        )
        if settings.auth == "none" and not settings.loopback and not settings.auth_insecure:
            raise StartError("error.settings.auth_none_exposed", host=settings.host)
        return settings

    @property
    def locale(self) -> Locale:
        """As configured."""
        return self.language

    @property
    def loopback(self) -> bool:
        """Whether HTTP is bound to this machine alone."""
        return is_loopback(self.host)

    @property
    def login_required(self) -> bool:
        """Whether a credential is asked for (GTW-023)."""
        return self.auth == "owner" or (self.auth is None and not self.loopback)

    @property
    def grpc_bind_host(self) -> str:
        """Where the gRPC port is bound: beside HTTP unless told otherwise."""
        return self.grpc_host or self.host


class OrchestratorSettings(_FromEnvironment):
    """What the orchestrator is told, with the whole configuration and the owner's keys."""

    home: Path
    orchestrator_listen: Address
    secrets_dir: Path
    database_url: SecretStr
    # None: somebody else migrates before this service starts.
    migration_database_url: SecretStr | None = None
    tools_address: Address
    # Where scripts are interpreted; empty: no agent is given `tool_script`.
    script_sandbox_address: str = ""
    run_dir: Path | None = None
    # Where this replica is reached by the others; empty with one replica.
    orchestrator_address: str = ""
    # GTW-025: a credential instead of a password.
    owner_token: SecretStr | None = None
    # Of the gateway: closed to sandboxed commands.
    port: Port = 8765
    grpc_port: Port = 8766
    # More ports closed to sandboxed commands: of the other services and the database (TLS-317).
    closed_ports: tuple[Port, ...] = ()
    # False: nothing starts by itself, no takeover, no drain, no expiry (TRN-083).
    schedule: bool = True
    # Under so much free space in the home's file system no turn begins (FLD-051).
    min_free_mb: Annotated[int, Field(ge=0, le=1_000_000_000)] = 200
    # The settings in force and where each comes from.
    config: LoadedConfig
    # The process environment over <home>/env (AGT-011): keys are looked up here by name.
    variables: Variables

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Self:
        """Read the slice, ``<home>/env`` and ``<home>/config.yaml``.

        Raises:
            StartError: A file or variable is missing, unreadable or has no allowed value.
        """
        home = home_of(environ)
        variables = Variables({**read_env_file(home / "env"), **environ})
        config = load_config(home / "config.yaml", variables)
        return cls._read(
            variables,
            home=home,
            config=config,
            variables=variables,
            closed_ports=comma_list(variables.get("MY_AGENT_CLOSED_PORTS", "")),
            schedule=switch(variables.get("MY_AGENT_SCHEDULE", "on")),
        )

    @property
    def locale(self) -> Locale:
        """As configured."""
        return self.config.values.language

    def secret_values(self) -> list[str]:
        """The owner's token, connection strings, and each variable whose name says it is a secret."""
        named = [value for name, value in self.variables.items() if _SECRET_NAME.search(name)]
        held = (self.owner_token, self.database_url, self.migration_database_url)
        secrets = [secret.get_secret_value() for secret in held if secret is not None]
        passwords = [urlsplit(secret).password for secret in secrets if "://" in secret]
        return [*named, *secrets, *(password for password in passwords if password)]

    def workspace_of(self, agent_id: str) -> Path:
        """Where an agent's workspace is when its profile names no other (agents.md, section 1)."""
        if self.config.values.workspaces_dir is not None:
            return self.config.values.workspaces_dir / agent_id
        if agent_id == "default":
            return self.home / "workspace"
        return self.home / "agents" / agent_id / "workspace"


def is_loopback(host: str) -> bool:
    """Whether binding `host` lets this machine alone connect."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _without_port(name: str) -> str:
    return name if name.startswith("[") else name.partition(":")[0]
