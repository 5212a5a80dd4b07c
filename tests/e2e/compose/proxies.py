"""The proxies of docs/reverse-proxies.md, run as the page shows them on ports of the test's own."""

from __future__ import annotations

import re
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.compose.engine import ROOT, free_port, wait_until

PAGE = ROOT / "docs" / "reverse-proxies.md"
NAME = "crew.example.org"
PROXIES = ("caddy", "nginx", "traefik")
_CERTIFICATE = f"/etc/letsencrypt/live/{NAME}/fullchain.pem"
_KEY = f"/etc/letsencrypt/live/{NAME}/privkey.pem"


def blocks(language: str) -> list[str]:
    """The page's blocks of a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for the name that signs itself, and its key."""
    pem, key = folder / "crew.pem", folder / "crew.key"
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
            "-days", "2", "-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}",
            "-keyout", str(key), "-out", str(pem),
        ],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return pem, key


def program(proxy: str) -> str | None:
    """Where the proxy is installed; Debian keeps nginx where only root looks."""
    return shutil.which(proxy, path=f"{ROOT / '.crew' / 'traefik' / 'bin'}:/usr/local/bin:/usr/bin:/usr/sbin")


@contextmanager
def running(proxy: str, folder: Path, pem: Path, key: Path, gateway_port: int) -> Iterator[int]:
    """The proxy in front of the gateway; yields its port on the loopback address."""
    port = free_port()
    made = _made_to_run(proxy, folder, pem, key, port, gateway_port)
    log = folder / "log"
    path = program(proxy)
    assert path is not None
    with log.open("wb") as output:
        process = subprocess.Popen([path, *made], stdout=output, stderr=output, cwd=folder)
    try:
        wait_until(lambda: process.poll() is not None or _answers(port, pem), 30, log.read_text)
        assert process.poll() is None, log.read_text()
        yield port
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _made_to_run(proxy: str, folder: Path, pem: Path, key: Path, port: int, gateway_port: int) -> list[str]:
    """Write the block with the test's ports and certificate; returns the program's arguments."""

    def fitted(text: str) -> str:
        replaced = text.replace("127.0.0.1:8765", f"127.0.0.1:{gateway_port}")
        return replaced.replace(_CERTIFICATE, str(pem)).replace(_KEY, str(key))

    match proxy:
        case "caddy":
            (block,) = blocks("caddyfile")
            # Where the page leaves the certificate to Caddy, the test brings its own.
            site = fitted(block).replace(f"{NAME} {{\n", f"{NAME}:{port} {{\n\ttls {pem} {key}\n", 1)
            (folder / "Caddyfile").write_text("{\n\tadmin off\n\tauto_https disable_redirects\n}\n" + site)
            return ["run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]
        case "nginx":
            (block,) = blocks("nginx")
            server = fitted(block).replace("listen 443 ", f"listen 127.0.0.1:{port} ")
            temporary = "".join(
                f"{kind}_temp_path {folder}/{kind};\n"
                for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
            )
            (folder / "nginx.conf").write_text(
                f"daemon off;\npid {folder}/pid;\nerror_log stderr;\nevents {{}}\n"
                f"http {{\naccess_log off;\n{temporary}{server}}}\n"
            )
            return ["-p", str(folder), "-c", str(folder / "nginx.conf")]
        case _:
            static, dynamic = (block for block in blocks("yaml") if block.startswith("# "))
            static = static.replace(":443", f"127.0.0.1:{port}")
            static = static.replace("/etc/traefik/crew.yaml", str(folder / "crew.yaml"))
            (folder / "traefik.yaml").write_text(static)
            (folder / "crew.yaml").write_text(fitted(dynamic))
            return ["--configFile", str(folder / "traefik.yaml")]


def _answers(port: int, pem: Path) -> bool:
    """Whether it takes connections with the certificate it was given; Traefik first shows its own."""
    trusting = ssl.create_default_context(cafile=str(pem))
    try:
        with (
            socket.create_connection(("127.0.0.1", port), timeout=2) as plain,
            trusting.wrap_socket(plain, server_hostname=NAME),
        ):
            return True
    except OSError:
        return False
