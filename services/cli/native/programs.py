"""The programs of a crew on this machine: Postgres, its preparation, and the services."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module

import psycopg

from services.cli.home import Layout
from services.cli.native.environment import read_variables
from services.cli.postgres.dumps import dump_before
from services.cli.postgres.running import START_SECONDS, answers, not_answering
from services.cli.supervisor import Program, Report
from services.cli.texts import language, texts
from services.common import settings
from services.common.process import REFUSED, ServiceSettings, run_service
from services.common.start import StartError
from services.orchestrator.store.migrate import migrate

POSTGRES = "postgres"
# What the command line may have chosen over the variables that were handed over.
_CHOSEN = ("MY_AGENT_PORT", "MY_AGENT_GRPC_PORT", "MY_AGENT_SCHEDULE")
_GRPC_QUIET = {"GRPC_VERBOSITY": "NONE", "GRPC_ENABLE_FORK_SUPPORT": "0"}


@dataclass(frozen=True, slots=True)
class Service:
    """A service by the name of its module, which is imported by name alone."""

    name: str
    module: str
    settings: type[ServiceSettings]


SERVICES = (
    Service("tools", "services.tools.app", settings.ToolsSettings),
    Service("script_sandbox", "services.script_sandbox.app", settings.ScriptSandboxSettings),
    Service("orchestrator", "services.orchestrator.app", settings.OrchestratorSettings),
    Service("gateway", "services.gateway.app", settings.GatewaySettings),
)


def postgres_program(layout: Layout) -> Program:
    """The database server, in the foreground."""

    def main(_report: Report) -> int:
        command = layout.cluster.server_command(os.getppid())
        os.execve(command[0], command, {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"})

    # SIGINT is Postgres's fast shutdown: connections are ended, nothing is lost.
    return Program(POSTGRES, main, reports=False, stop_signal=signal.SIGINT)


def database_program(layout: Layout, *, audit_months: int) -> Program:
    """Waits for Postgres, makes roles and database, and brings the schema up to date.

    Args:
        layout: Whose database.
        audit_months: Full months of the audit trail to keep.
    """

    def main(report: Report) -> int:
        try:
            _await_postgres(layout)
            cluster = layout.cluster
            cluster.provision()
            migrate(
                cluster.url("crew_owner"),
                before_change=lambda change: dump_before(change, cluster.url("crew_owner"), layout.backups),
                audit_months=audit_months,
            )
        except StartError as error:
            report.refused(error.text(language()))
            return REFUSED
        except (psycopg.Error, OSError) as error:
            report.refused(
                texts().text(language(), "error.postgres.unusable", problem=str(error).splitlines()[0][:300])
            )
            return REFUSED
        return 0

    return Program("database", main)


def service_program(
    service: Service, layout: Layout, environ: Mapping[str, str], variables: int | None
) -> Program:
    """A service in a forked child, with the environment that is its alone.

    Args:
        service: Which one.
        layout: The home it belongs to.
        environ: Plain variables: they hold no secret.
        variables: The descriptor of all variables, for the orchestrator; None for the others.
    """

    def main(report: Report) -> int:
        if variables is None:
            own = {key: value for key, value in environ.items() if key != "MY_AGENT_HOME"}
        else:
            chosen = {name: environ[name] for name in _CHOSEN if name in environ}
            own = read_variables(variables) | chosen
        own |= _environment(service.name, layout) | _GRPC_QUIET
        os.environ.clear()
        os.environ.update(own)
        app = import_module(service.module)
        return run_service(
            service.name, service.settings, app.serve, own, ready=report.ready, refused=report.refused
        )

    return Program(service.name, main, keeps=() if variables is None else (variables,))


def _environment(name: str, layout: Layout) -> dict[str, str]:
    """What a service is told about where things are; the home and the database are one's alone."""
    common = {
        "MY_AGENT_RUN_DIR": str(layout.run),
        "MY_AGENT_SECRETS_DIR": str(layout.secrets(name)),
    }
    match name:
        case "orchestrator":
            return common | {
                "MY_AGENT_HOME": str(layout.home),
                "MY_AGENT_ORCHESTRATOR_LISTEN": layout.socket("orchestrator"),
                "MY_AGENT_TOOLS_ADDRESS": layout.socket("tools"),
                "MY_AGENT_SCRIPT_SANDBOX_ADDRESS": layout.socket("script_sandbox"),
                "MY_AGENT_DATABASE_URL": layout.cluster.url("crew_app"),
            }
        case "tools":
            return common | {
                "MY_AGENT_TOOLS_LISTEN": layout.socket("tools"),
                "MY_AGENT_TOOLS_STATE_DIR": str(layout.home / "state" / "tools"),
            }
        case "script_sandbox":
            return common | {"MY_AGENT_SCRIPT_SANDBOX_LISTEN": layout.socket("script_sandbox")}
        case "gateway":
            return common | {"MY_AGENT_ORCHESTRATOR_ADDRESS": layout.socket("orchestrator")}
        case _:
            return common


def _await_postgres(layout: Layout) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not answers(layout.cluster):
        if time.monotonic() > deadline:
            raise not_answering([])
        time.sleep(0.03)
