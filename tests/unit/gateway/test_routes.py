"""Which method an address means."""

from __future__ import annotations

import pytest

from services.common.api import api_methods
from services.gateway.http.openapi import describe
from services.gateway.http.routes import Match, RouteTable, WrongVerb

TABLE = RouteTable(api_methods().values())


def found(verb: str, path: str) -> Match:
    match = TABLE.find(verb, path.encode())
    assert isinstance(match, Match)
    return match


def test_fixed_parts_win_over_fields() -> None:
    assert found("GET", "/api/approvals/waiting").binding.method.path == "/crew.v1.Approvals/ListWaiting"
    decide = found("POST", "/api/approvals/waiting")
    assert decide.binding.method.path == "/crew.v1.Turns/Decide"
    assert decide.values == {"approval_id": "waiting"}


@pytest.mark.spec("GTW-042")
def test_both_addresses_of_a_decision_mean_the_same_method() -> None:
    short = found("POST", "/api/approvals/a1")
    long = found("POST", "/api/conversations/c1/approvals/a1")
    assert short.binding.method is long.binding.method
    assert short.values == {"approval_id": "a1"}
    assert long.values == {"conversation_id": "c1", "approval_id": "a1"}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/api/conversations/a%2Fb", "a/b"),
        ("/api/conversations/%C3%A9%20x", "é x"),
        ("/api/conversations/..", ".."),
        ("/api/conversations/%2e%2e%2fetc", "../etc"),
        ("/api/conversations/a%2525", "a%25"),
        ("/api/conversations/a+b", "a+b"),
        ("/%61pi/conversations/x", "x"),
    ],
)
def test_a_field_is_decoded_once_and_stays_one_segment(path: str, value: str) -> None:
    assert found("GET", path).values == {"id": value}


@pytest.mark.parametrize(
    "path",
    [
        "/api",
        "/api/",
        "/api//",
        "/api/nope",
        "/api/conversations/",
        "/api/conversations//turn",
        "/api//conversations",
        "//api/conversations",
        "/api/conversations/a%00b",
        "/api/conversations/%ff",
        "/api/conversations/a/b/c/d",
        "/api/Conversations",
        "/api/conversations/a/turn/",
    ],
)
@pytest.mark.spec("GTW-003")
def test_what_is_no_address(path: str) -> None:
    assert TABLE.find("GET", path.encode()) is None


@pytest.mark.spec("GTW-003")
def test_a_known_address_names_the_verbs_it_takes() -> None:
    wrong = TABLE.find("PUT", b"/api/conversations/c1")
    assert isinstance(wrong, WrongVerb)
    assert wrong.allowed == ("DELETE", "GET", "PATCH")


@pytest.mark.spec("GTW-031")
def test_every_method_of_the_api_declares_a_scope_and_every_service_is_guarded() -> None:
    from crew.v1 import auth_pb2, conversations_pb2, crew_pb2, turns_pb2

    methods = api_methods()
    for module in (auth_pb2, conversations_pb2, crew_pb2, turns_pb2):
        for service in module.DESCRIPTOR.services_by_name.values():
            for method in service.methods:
                assert methods[f"/{service.full_name}/{method.name}"].scope
    scopes = {path: method.scope for path, method in methods.items()}
    assert scopes["/crew.v1.Turns/Send"] == "chat"
    assert scopes["/crew.v1.Turns/Watch"] == "chat"
    assert scopes["/crew.v1.Turns/Decide"] == "approve"
    assert scopes["/crew.v1.Crew/Decide"] == "approve"
    assert scopes["/crew.v1.Auth/CreateToken"] == "owner"


def test_what_the_gateway_asks_for_itself_has_no_address() -> None:
    mounted = {binding.method.path for binding in TABLE.bindings}
    internal = {path for path, method in api_methods().items() if method.scope == "internal"}
    assert internal == {
        "/crew.v1.Auth/Verify",
        "/crew.v1.Auth/Login",
        "/crew.v1.Auth/SetUp",
        "/crew.v1.Auth/OpenSetUp",
        "/crew.v1.Auth/ReportDenied",
        "/crew.v1.Auth/Logout",
    }
    assert not mounted & internal


def test_the_description_covers_every_address_and_nothing_twice() -> None:
    document = describe(TABLE.bindings, "1.2.3")
    described = {
        (path, verb.upper()) for path, operations in document["paths"].items() for verb in operations
    }
    assert {(binding.template, binding.verb) for binding in TABLE.bindings} <= described
    assert ("/api/auth/login", "POST") in described
    names = [
        operation["operationId"]
        for operations in document["paths"].values()
        for operation in operations.values()
    ]
    assert len(names) == len(set(names))
    schemas = document["components"]["schemas"]
    for name in _references(document):
        assert name in schemas
    properties = schemas["Conversation"]["properties"]
    assert properties["pending_approval"] == {
        "anyOf": [{"$ref": "#/components/schemas/Approval"}, {"type": "null"}]
    }
    update = document["paths"]["/api/conversations/{id}"]["patch"]["requestBody"]["content"]
    fields = update["application/json"]["schema"]["properties"]
    assert "title" in fields
    assert "update_mask" not in fields
    assert "id" not in fields


def _references(tree: object) -> set[str]:
    if isinstance(tree, dict):
        own = {tree["$ref"].rsplit("/", 1)[1]} if "$ref" in tree else set()
        return own.union(*(_references(value) for value in tree.values())) if tree else own
    if isinstance(tree, list):
        return set().union(*(_references(value) for value in tree)) if tree else set()
    return set()
