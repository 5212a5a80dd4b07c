"""Images for arm64 from the same lock file: every package has a wheel, every binary is for that machine."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.compose.engine import ROOT, docker

pytestmark = pytest.mark.timeout(600)

# e_machine of an ELF file.
_AARCH64 = 183
_X86_64 = 62
_PLATFORM = "aarch64-manylinux_2_28"


def _uv() -> str | None:
    own = next(iter(sorted((ROOT / ".crew").glob("uv-*/bin/uv"), reverse=True)), None)
    return str(own) if own else shutil.which("uv")


def _extras() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return list(project["optional-dependencies"])


def _machine(path: Path) -> int | None:
    """What machine an ELF file is for; None for any other file."""
    with path.open("rb") as file:
        head = file.read(20)
    if len(head) < 20 or head[:4] != b"\x7fELF":
        return None
    order = "<" if head[5] == 1 else ">"
    return int(struct.unpack_from(f"{order}H", head, 18)[0])


def _elf_files(folder: Path) -> Iterator[tuple[Path, int]]:
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink() and (machine := _machine(path)) is not None:
            yield path, machine


@pytest.mark.spec("FLD-055")
@pytest.mark.skipif(
    os.environ.get("CREW_E2E_CONTAINERS") != "1",
    reason="downloads every package for arm64: CREW_E2E_CONTAINERS=1",
)
def test_every_locked_package_has_a_wheel_with_binaries_for_arm64(tmp_path: Path) -> None:
    uv = _uv()
    assert uv is not None
    wanted = tmp_path / "requirements.txt"
    extras = [part for extra in _extras() for part in ("--extra", extra)]
    subprocess.run(
        [uv, "export", "--quiet", "--frozen", "--no-dev", "--no-emit-project", *extras, "-o", str(wanted)],
        cwd=ROOT,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    target = tmp_path / "packages"
    done = subprocess.run(
        [
            uv, "pip", "install", "--quiet", "--target", str(target), "--python-version", "3.11",
            "--python-platform", _PLATFORM, "--only-binary", ":all:", "--no-deps", "-r", str(wanted),
        ],
        capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    machines = dict(_elf_files(target))
    assert {path for path, machine in machines.items() if machine != _AARCH64} == set()
    # The database and the compiled parts of gRPC are among them, or nothing was looked at.
    names = {path.name for path in machines}
    assert "postgres" in names
    assert any(name.startswith("cygrpc") for name in names)


def test_the_look_at_a_binary_tells_machines_apart(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("#!/bin/sh\n")
    assert _machine(tmp_path / "text") is None
    assert _machine(Path(sys.executable).resolve()) in {_AARCH64, _X86_64}


@pytest.mark.spec("FLD-055")
@pytest.mark.skipif(
    not os.environ.get("CREW_E2E_ARM64_BASE"),
    reason="emulation takes many minutes: CREW_E2E_ARM64_BASE names an arm64 base; needs qemu-user-static",
)
def test_the_arm64_gateway_starts_emulated() -> None:
    tag = "my-agent-crew/gateway:arm64"
    base = f"BASE_IMAGE={os.environ['CREW_E2E_ARM64_BASE']}"
    authorities = os.environ.get("SSL_CERT_FILE") or "/etc/ssl/certs/ca-certificates.crt"
    docker(
        "build", "-q", "--platform", "linux/arm64", "-f", str(ROOT / "deploy" / "Dockerfile"),
        "--target", "gateway", "--build-arg", base, "--secret", f"id=ca,src={authorities}", "-t", tag,
        str(ROOT), timeout=3600,
    )  # fmt: skip
    program = "import platform, grpc, services.gateway.app; print(platform.machine())"
    shown = docker("run", "--rm", "--platform", "linux/arm64", tag, "python", "-c", program, timeout=900)
    assert shown.stdout.strip() == "aarch64"
