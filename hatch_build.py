"""Generates the Python code of protos/ when the project is installed, into generated/."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ProtoHook(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        import grpc_tools
        from grpc_tools import protoc

        root = Path(self.root)
        out = root / "generated"
        out.mkdir(exist_ok=True)
        annotations = find_spec("google.api.annotations_pb2")
        if annotations is None or annotations.origin is None:
            raise RuntimeError("googleapis-common-protos is missing from the build environment")
        googleapis = Path(annotations.origin).parents[2]
        includes = [root / "protos", Path(grpc_tools.__file__).parent / "_proto", googleapis]
        files = sorted(str(p) for p in (root / "protos").rglob("*.proto"))
        code = protoc.main(
            [
                "protoc",
                *(f"-I{include}" for include in includes),
                f"--python_out={out}",
                f"--pyi_out={out}",
                f"--grpc_python_out={out}",
                f"--mypy_grpc_out={out}",
                *files,
            ]
        )
        if code != 0:
            raise RuntimeError("protoc failed")
        for package in (out / "crew", out / "crew" / "v1"):
            (package / "__init__.py").touch()
        if version == "standard":
            build_data["force_include"][str(out / "crew")] = "crew"
