"""What a compose file grants, as the compose program itself resolves it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

# Each is a way to the host that no service of the crew has a use for.
FORBIDDEN_SOURCES = ("/", "/proc", "/sys", "/dev", "/etc", "/run", "/var/run", "/var/lib/docker")
FORBIDDEN_PARTS = ("docker.sock", "containerd.sock", "podman.sock", "crio.sock")
HOST_NAMESPACES = ("network_mode", "pid", "ipc", "uts", "userns_mode", "cgroup")


@dataclass(frozen=True, slots=True)
class Volume:
    """One mount of a service: a named volume, or a folder of the host when `source` has a slash."""

    source: str
    target: str
    read_only: bool


def volumes(service: Mapping[str, Any]) -> Iterator[Volume]:
    """The mounts of a service, in the short spelling and in the long one."""
    for entry in service.get("volumes", ()):
        if isinstance(entry, str):
            source, target, *mode = entry.split(":")
            yield Volume(source, target, mode == ["ro"])
        else:
            yield Volume(str(entry.get("source", "")), entry["target"], bool(entry.get("read_only")))


def faults(document: Mapping[str, Any], secrets_maker: str = "prepare") -> list[str]:
    """Everything in a resolved file that gives a service more than FLD-056 allows.

    Args:
        document: The resolved compose or stack file.
        secrets_maker: The one service that has all secrets, because it makes them; it must have no
            network then.
    """
    found = []
    for name, service in document["services"].items():
        for volume in volumes(service):
            found += [f"{name} mounts {problem}" for problem in _mount_faults(name, volume, secrets_maker)]
        if name == secrets_maker and service.get("network_mode") != "none":
            found.append(f"{name} has all secrets and a network")
        if service.get("privileged"):
            found.append(f"{name} is privileged")
        if service.get("devices"):
            found.append(f"{name} has devices of the host")
        found += [f"{name} shares the host's {key}" for key in HOST_NAMESPACES if service.get(key) == "host"]
    return found


def _mount_faults(service: str, volume: Volume, secrets_maker: str) -> Iterator[str]:
    if any(part in volume.source for part in FORBIDDEN_PARTS):
        yield f"an engine's socket: {volume.source}"
    if volume.source.rstrip("/") in {path.rstrip("/") for path in FORBIDDEN_SOURCES}:
        yield f"a folder of the host's own: {volume.source}"
    if volume.source.startswith(("/proc/", "/sys/", "/dev/")):
        yield f"the host's kernel files: {volume.source}"
    whose = volume.source.rpartition("secrets-")[2] if "secrets-" in volume.source else service
    # The schema is changed by the command line's image.
    allowed = {service, "cli"} if service == "migrate" else {service}
    if whose not in allowed and service != secrets_maker:
        yield f"another service's secrets: {volume.source}"
