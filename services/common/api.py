"""The methods people and programs call, as the contracts declare them.

What a method needs (its scope) and how it looks over HTTP stands in the .proto files alone; every
service that guards, mounts or forwards methods reads it here.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args

from crew.v1 import options_pb2
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor

Scope = Literal["public", "read", "chat", "approve", "files", "manage", "owner", "internal"]
# What an API token may be given (GTW-031).
TOKEN_SCOPES: tuple[Scope, ...] = ("read", "chat", "approve", "files", "manage")
# What the owner's session holds: everything a token may, and what only the owner may (GTW-032).
OWNER_SCOPES: tuple[Scope, ...] = (*TOKEN_SCOPES, "owner")
DEFAULT_DEADLINE_SECONDS = 30
PRINCIPAL_METADATA = "crew-principal-bin"


@dataclass(frozen=True, slots=True)
class ApiMethod:
    """One method of the API."""

    # "/crew.v1.Turns/Send"
    path: str
    scope: Scope
    # HTTP status of success.
    status: int
    streams: bool
    # Of a unary call.
    deadline_seconds: int
    descriptor: MethodDescriptor

    @property
    def service(self) -> str:
        """Full name of the service, such as ``crew.v1.Turns``."""
        return str(self.descriptor.containing_service.full_name)

    @property
    def request(self) -> Descriptor:
        """The type of the request."""
        return self.descriptor.input_type

    @property
    def response(self) -> Descriptor:
        """The type of the answer, or of one message of a streamed answer."""
        return self.descriptor.output_type


@cache
def api_methods() -> Mapping[str, ApiMethod]:
    """Every method that declares a scope, by its path.

    Raises:
        ValueError: A scope does not exist, or a method of such a service declares none.
    """
    methods: dict[str, ApiMethod] = {}
    for descriptor in _service_methods():
        options: Any = descriptor.GetOptions()
        if not options.HasExtension(options_pb2.route):
            continue
        route = options.Extensions[options_pb2.route]
        path = f"/{descriptor.containing_service.full_name}/{descriptor.name}"
        if route.scope not in get_args(Scope):
            raise ValueError(f"{path} has no scope that exists: {route.scope!r}")
        methods[path] = ApiMethod(
            path=path,
            scope=route.scope,
            status=route.status or 200,
            streams=descriptor.server_streaming,
            deadline_seconds=route.deadline_seconds or DEFAULT_DEADLINE_SECONDS,
            descriptor=descriptor,
        )
    guarded = {method.service for method in methods.values()}
    for descriptor in _service_methods():
        path = f"/{descriptor.containing_service.full_name}/{descriptor.name}"
        if descriptor.containing_service.full_name in guarded and path not in methods:
            raise ValueError(f"{path} declares no scope")
    return methods


def raw_json_empty(field: FieldDescriptor) -> str | None:
    """What an empty raw-JSON field stands for, as JSON text; None when the field is not raw JSON."""
    extensions: Any = field.GetOptions().Extensions
    if not extensions[options_pb2.raw_json]:
        return None
    return str(extensions[options_pb2.raw_json_empty]) or "null"


def omits_unset(field: FieldDescriptor) -> bool:
    """Whether HTTP leaves the key of an unset field out instead of writing null."""
    extensions: Any = field.GetOptions().Extensions
    return bool(extensions[options_pb2.omit_unset])


def _service_methods() -> list[MethodDescriptor]:
    import crew.v1

    found: list[MethodDescriptor] = []
    for module in pkgutil.iter_modules(crew.v1.__path__, "crew.v1."):
        if not module.name.endswith("_pb2"):
            continue
        for service in importlib.import_module(module.name).DESCRIPTOR.services_by_name.values():
            found.extend(service.methods)
    return found
