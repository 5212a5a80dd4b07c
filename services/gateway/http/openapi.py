"""The description of the API, made from the same descriptors as the API itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from crew.v1 import attachment_pb2
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from services.common.api import raw_json_empty
from services.gateway.http.decoding import UPDATE_MASK
from services.gateway.http.encoding import enum_names
from services.gateway.http.routes import Binding

_WHOLE = frozenset(
    {
        FieldDescriptor.TYPE_INT32,
        FieldDescriptor.TYPE_INT64,
        FieldDescriptor.TYPE_UINT32,
        FieldDescriptor.TYPE_UINT64,
    }
)
_REAL = frozenset({FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT})
_PROBLEM = {"$ref": "#/components/schemas/Problem"}
_LOGIN = {"204": {"description": "A session began; its cookie is set."}}

Schema = dict[str, Any]


def describe(bindings: Iterable[Binding], version: str) -> Schema:
    """An OpenAPI 3.1 document of the mounted addresses and of the hand-written ones."""
    schemas: dict[str, Schema] = {
        "Problem": {
            "type": "object",
            "required": ["detail"],
            "properties": {
                "detail": {
                    "anyOf": [
                        {"type": "string"},
                        {
                            "type": "object",
                            "required": ["error", "message"],
                            "properties": {"error": {"type": "string"}, "message": {"type": "string"}},
                        },
                    ]
                }
            },
        }
    }
    paths: dict[str, Schema] = _hand_written()
    for binding in bindings:
        path = paths.setdefault(binding.template, {})
        if binding.verb.lower() not in path:
            path[binding.verb.lower()] = _operation(binding, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "my-agent-crew", "version": version},
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "crew_session"},
            },
        },
        "security": [{"token": []}, {"session": []}],
    }


def _operation(binding: Binding, schemas: dict[str, Schema]) -> Schema:
    method = binding.method
    service = method.service.rsplit(".", 1)[-1]
    operation: Schema = {
        "operationId": f"{service}.{method.descriptor.name}.{binding.template.count('/')}",
        "tags": [service],
        "x-scope": method.scope,
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in binding.path_fields
        ],
        "responses": {str(method.status): _success(binding, schemas), "default": _failure()},
    }
    if method.scope == "public":
        operation["security"] = []
    rest = [
        field
        for field in method.request.fields
        if field.name not in binding.path_fields and field.name != UPDATE_MASK
    ]
    if binding.takes_body:
        operation["requestBody"] = {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {
                        "type": "object",
                        "additionalProperties": False,
                        "properties": {field.name: _field(field, schemas) for field in rest},
                    }
                }
            },
        }
    else:
        operation["parameters"] += [
            {"name": field.name, "in": "query", "required": False, "schema": _field(field, schemas)}
            for field in rest
        ]
    return operation


def _success(binding: Binding, schemas: dict[str, Schema]) -> Schema:
    method = binding.method
    if method.status == 204:
        return {"description": "Done."}
    if method.streams:
        schema: Schema = {"type": "string"}
        _message(method.response, schemas)
        note = f"Server-sent events; each is a field of the one-of in {method.response.name}."
        return {"description": note, "content": {"text/event-stream": {"schema": schema}}}
    if method.response is attachment_pb2.Attachment.DESCRIPTOR:
        file = {"type": "string", "contentMediaType": "application/octet-stream"}
        return {"description": "A file to be saved.", "content": {"*/*": {"schema": file}}}
    schema = _message(method.response, schemas) if binding.shown is None else _field(binding.shown, schemas)
    return {"description": "Done.", "content": {"application/json": {"schema": schema}}}


def _failure() -> Schema:
    return {"description": "Refused.", "content": {"application/json": {"schema": _PROBLEM}}}


def _message(descriptor: Descriptor, schemas: dict[str, Schema]) -> Schema:
    if descriptor.name not in schemas:
        schema: Schema = {"type": "object"}
        # Entered before its fields, which may be of the same type.
        schemas[descriptor.name] = schema
        schema["properties"] = {field.name: _field(field, schemas) for field in descriptor.fields}
    return {"$ref": f"#/components/schemas/{descriptor.name}"}


def _field(field: FieldDescriptor, schemas: dict[str, Schema]) -> Schema:
    schema = _single(field, schemas)
    if field.is_repeated:
        return {"type": "array", "items": schema}
    if field.has_presence and schema:
        return {"anyOf": [schema, {"type": "null"}]}
    return schema


def _single(field: FieldDescriptor, schemas: dict[str, Schema]) -> Schema:
    if field.message_type is not None:
        return _message(field.message_type, schemas)
    if field.enum_type is not None:
        return {"type": "string", "enum": list(enum_names(field.enum_type).values())}
    if raw_json_empty(field) is not None:
        return {}
    if field.type in _WHOLE:
        return {"type": "integer"}
    if field.type in _REAL:
        return {"type": "number"}
    return {"type": "boolean" if field.type == FieldDescriptor.TYPE_BOOL else "string"}


def _hand_written() -> dict[str, Schema]:
    def body(*names: str) -> Schema:
        schema = {
            "type": "object",
            "required": list(names),
            "properties": {name: {"type": "string"} for name in names},
        }
        return {"required": True, "content": {"application/json": {"schema": schema}}}

    session = {
        "type": "object",
        "properties": {
            "mode": {"type": "string", "enum": ["owner", "none"]},
            "authenticated": {"type": "boolean"},
            "kind": {"anyOf": [{"enum": ["session", "token", "local"]}, {"type": "null"}]},
            "scopes": {"type": "array", "items": {"type": "string"}},
            "expires_at": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
    }

    def operation(name: str, responses: Schema, request: Schema | None = None) -> Schema:
        made: Schema = {
            "operationId": f"Login.{name}",
            "tags": ["Login"],
            "x-scope": "public",
            "security": [],
            "responses": {**responses, "default": _failure()},
        }
        if request is not None:
            made["requestBody"] = request
        return made

    shown = {"description": "Who calls.", "content": {"application/json": {"schema": session}}}
    return {
        "/api/auth/login": {"post": operation("LogIn", _LOGIN, body("password"))},
        "/api/auth/setup": {"post": operation("SetUp", _LOGIN, body("setup_token", "password"))},
        "/api/auth/logout": {"post": operation("LogOut", {"204": {"description": "The session ended."}})},
        "/api/auth/session": {"get": operation("Session", {"200": shown})},
    }
