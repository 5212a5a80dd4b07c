"""A crew on this machine, from its home to the last process that ends."""

from __future__ import annotations

import gc
import threading
from collections.abc import Sequence
from importlib import import_module

from services.cli.home import Layout, check_disk, check_port, locked
from services.cli.native.programs import (
    POSTGRES,
    SERVICES,
    Service,
    database_program,
    postgres_program,
    service_program,
)
from services.cli.supervisor import ProgramEnded, Stopped, Supervisor
from services.cli.texts import complain, language, say, speak, texts
from services.common.rpc.tokens import issue_all
from services.common.settings import GatewaySettings, load_config

READY_SECONDS = 60.0


def up(environ: dict[str, str], variables: int | None, services: Sequence[Service] = SERVICES) -> int:
    """Run the crew of a home; returns the exit code after a stop that was asked for.

    Args:
        environ: Plain variables; this process and most services see no others.
        variables: Descriptor of all variables, for the orchestrator.
        services: What runs beside Postgres.

    Raises:
        StartError: Something stands in the way; nothing is left running.
    """
    layout = Layout.from_environment(environ)
    config = load_config(layout.config, environ)
    speak(config.values.language)
    environ["MY_AGENT_LANGUAGE"] = config.values.language
    gateway = _gateway(environ, layout)
    layout.prepare()
    check_disk(layout.home)
    with locked(layout):
        check_port(gateway.host, gateway.port, "--port")
        check_port(gateway.grpc_bind_host, gateway.grpc_port, "--grpc-port")
        issue_all(layout.home / "secrets")
        if not layout.cluster.exists:
            say("cli.up.making_database")
        layout.cluster.initialise()
        return _supervise(layout, environ, variables, services, gateway, config.values.audit_months)


def _supervise(
    layout: Layout,
    environ: dict[str, str],
    variables: int | None,
    services: Sequence[Service],
    gateway: GatewaySettings,
    audit_months: int,
) -> int:
    supervisor = Supervisor(layout.logs, _told)
    try:
        supervisor.start(postgres_program(layout))
        # While Postgres starts; what is imported here, all children share.
        _prepare_imports(services)
        supervisor.run_to_end(database_program(layout, audit_months=audit_months))
        for service in services:
            own = variables if service.name == "orchestrator" else None
            told = environ | {
                "MY_AGENT_PORT": str(gateway.port),
                "MY_AGENT_GRPC_PORT": str(gateway.grpc_port),
            }
            supervisor.start(service_program(service, layout, told, own))
        supervisor.wait_ready([service.name for service in services], READY_SECONDS)
        say("cli.up.running", address=_address(gateway), logs=layout.logs)
        supervisor.supervise()
    except Stopped:
        pass
    except ProgramEnded as ended:
        complain(_sentence(ended, layout))
        return 1
    finally:
        supervisor.stop(last=POSTGRES)
    say("cli.up.stopped")
    return 0


def _prepare_imports(services: Sequence[Service]) -> None:
    """Import once what every child would import, and keep the collector from touching it."""
    for service in services:
        import_module(service.module)
    import_module("uvloop")
    if threading.active_count() != 1:
        names = ", ".join(thread.name for thread in threading.enumerate())
        raise RuntimeError(f"an import started a thread, which does not survive a fork: {names}")
    gc.collect()
    gc.freeze()


def _gateway(environ: dict[str, str], layout: Layout) -> GatewaySettings:
    return GatewaySettings.from_environment(
        environ
        | {
            "MY_AGENT_ORCHESTRATOR_ADDRESS": layout.socket("orchestrator"),
            "MY_AGENT_SECRETS_DIR": str(layout.secrets("gateway")),
        }
    )


def _address(gateway: GatewaySettings) -> str:
    host = "127.0.0.1" if gateway.host in {"0.0.0.0", "::", "[::]"} else gateway.host.strip("[]")  # noqa: S104
    return f"http://[{host}]:{gateway.port}" if ":" in host else f"http://{host}:{gateway.port}"


def _told(name: str, status: int, seconds: float) -> None:
    how = "cli.up.ended_by_signal" if status < 0 else "cli.up.ended"
    say(how, name=name, status=abs(status), seconds=seconds)


def _sentence(ended: ProgramEnded, layout: Layout) -> str:
    if ended.sentence:
        return ended.sentence
    return texts().text(
        language(),
        "error.up.not_ready" if ended.status is None else "error.up.ended",
        name=ended.name,
        status=ended.status,
        seconds=int(READY_SECONDS),
        log=layout.logs / f"{ended.name}.log",
        words=" ".join(ended.words[-1:])[:400] or "-",
    )
