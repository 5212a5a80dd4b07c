"""The protos: held to buf's rules, and to what was promised before.

buf is given compiled images: it then needs neither a network nor copies of Google's protos.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import tempfile
from importlib.util import find_spec
from pathlib import Path

from services.cli.texts import language, texts


def lint(root: Path) -> bool | str:
    """Hold the protos of the working tree to the rules of buf.yaml."""
    buf = _buf()
    if isinstance(buf, Path):
        with tempfile.TemporaryDirectory() as folder:
            image = _image(root / "protos", Path(folder) / "now.binpb")
            command = [str(buf), "lint", str(image), "--config", str(root / "buf.yaml")]
            return subprocess.run(command, cwd=root, check=False).returncode == 0
    return buf


def breaking(root: Path) -> bool | str:
    """Compare the protos with those of the last tag, else of the main branch.

    Returns:
        Whether everything that was promised is kept, or why there is nothing to compare with.
    """
    buf = _buf()
    if not isinstance(buf, Path):
        return buf
    baseline = _baseline(root)
    if baseline is None:
        return texts().text(language(), "cli.test.no_baseline")
    with tempfile.TemporaryDirectory() as folder:
        before = Path(folder) / "before"
        with tarfile.open(fileobj=io.BytesIO(baseline)) as archive:
            archive.extractall(before, filter="data")
        if not list(before.glob("protos/**/*.proto")):
            return texts().text(language(), "cli.test.no_baseline")
        old = _image(before / "protos", Path(folder) / "before.binpb")
        new = _image(root / "protos", Path(folder) / "now.binpb")
        command = [str(buf), "breaking", str(new), "--against", str(old), "--config", str(root / "buf.yaml")]
        return subprocess.run(command, cwd=root, check=False).returncode == 0


def _buf() -> Path | str:
    program = Path(sys.executable).parent / "buf"
    return program if program.exists() else texts().text(language(), "cli.test.no_tool", name="buf")


def _image(protos: Path, image: Path) -> Path:
    """Compile all protos below a folder with everything they import.

    Raises:
        RuntimeError: protoc refused them; it has said why.
    """
    tools, google = find_spec("grpc_tools"), find_spec("google.api.annotations_pb2")
    if tools is None or tools.origin is None or google is None or google.origin is None:
        raise RuntimeError("grpcio-tools and googleapis-common-protos are needed")
    includes = [protos, Path(tools.origin).parent / "_proto", Path(google.origin).parents[2]]
    files = sorted(str(path) for path in protos.rglob("*.proto"))
    command = [
        *(sys.executable, "-m", "grpc_tools.protoc", "--include_imports", "--include_source_info"),
        *(f"-I{include}" for include in includes),
        f"--descriptor_set_out={image}",
        *files,
    ]
    if subprocess.run(command, check=False).returncode != 0:
        raise RuntimeError("protoc refused the protos")
    return image


def _baseline(root: Path) -> bytes | None:
    """A tar of the protos of the last tag or of main; None when this is neither's descendant."""
    for name in (_git(root, "describe", "--tags", "--abbrev=0"), b"main", b"origin/main"):
        if name:
            found = _git(root, "archive", name.decode().strip(), "protos")
            if found:
                return found
    return None


def _git(root: Path, *arguments: str) -> bytes:
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, check=False)
    except FileNotFoundError:
        return b""
    return done.stdout if done.returncode == 0 else b""
