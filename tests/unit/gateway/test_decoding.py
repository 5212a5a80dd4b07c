"""Bodies and queries as messages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from crew.v1 import auth_pb2, conversations_pb2, system_pb2, turns_pb2
from hypothesis import given
from hypothesis import strategies as st

from services.common.errors import CrewError, Invalid, NotApplicable
from services.common.wording import load
from services.gateway.http.decoding import fill, fill_query, parse_object

WORDS = load("gateway")


def sentence(error: CrewError, locale: Any = "en") -> str:
    return WORDS.text(locale, error.key, **error.values)


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"{'text': 1}",
        b'{"text": NaN}',
        b'{"text": -Infinity}',
        b'{"text": "a", "text": "b"}',
        b'{"a": {"b": 1, "b": 2}}',
        b"\xff\xfe",
        b'{"a": "\xc3("}',
        b'\xef\xbb\xbf{"text": "x"}',
        b"{}{}",
        b'{"a": 01}',
        b"[" * 200_000,
        b'{"a":' * 200_000,
    ],
)
def test_what_is_no_json_is_400(body: bytes) -> None:
    with pytest.raises(NotApplicable) as caught:
        parse_object(body)
    assert caught.value.http_status == 400
    assert sentence(caught.value)
    assert sentence(caught.value, "vi") != sentence(caught.value)


@pytest.mark.parametrize("body", [b"[]", b"1", b'"x"', b"null", b"true"])
def test_json_that_is_no_object_is_422(body: bytes) -> None:
    with pytest.raises(Invalid):
        parse_object(body)


@pytest.mark.parametrize("body", [b"", b"  \n", b"{}"])
def test_an_empty_body_is_an_empty_object(body: bytes) -> None:
    assert parse_object(body) == {}


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_else(body: bytes) -> None:
    try:
        tree = parse_object(body)
    except (NotApplicable, Invalid) as error:
        tree = {"refused": sentence(error)}
    assert isinstance(tree, dict)


@pytest.mark.spec("GTW-038", "GTW-039")
@pytest.mark.parametrize(
    ("tree", "words"),
    [
        ({"text": 1}, "text"),
        ({"text": ["a"]}, "text"),
        ({"text": True}, "text"),
        ({"text": {"a": 1}}, "text"),
        ({"nope": 1}, "nope"),
        ({"Text": "x"}, "Text"),
        ({"requestId": "x"}, "requestId"),
        ({"text": "a\0b"}, "text"),
        ({"text": "\ud800"}, "text"),
    ],
)
def test_a_wrong_field_is_named_and_never_a_protobuf_type(tree: dict[str, Any], words: str) -> None:
    body = json.dumps(tree).encode()
    with pytest.raises(Invalid) as caught:
        fill(turns_pb2.SendMessageRequest(), parse_object(body))
    for locale in ("en", "vi"):
        text = sentence(caught.value, locale)
        assert words in text
        assert "crew.v1" not in text
        assert "TYPE_" not in text
        assert "protobuf" not in text.lower()


@pytest.mark.parametrize(
    ("value", "kept"), [("5", 5), ("5.0", 5), ("5e0", 5), ("2147483647", 2**31 - 1), ("-1", -1)]
)
def test_whole_numbers(value: str, kept: int) -> None:
    request = auth_pb2.CreateTokenRequest()
    fill(request, parse_object(f'{{"expires_in_days": {value}}}'.encode()))
    assert request.expires_in_days == kept


@pytest.mark.parametrize(
    "value", ["1.5", "2147483648", "1e400", '"5"', "true", "[]", "9" * 5000, "-2147483649"]
)
def test_what_is_no_whole_number(value: str) -> None:
    with pytest.raises(Invalid):
        fill(auth_pb2.CreateTokenRequest(), parse_object(f'{{"expires_in_days": {value}}}'.encode()))


def test_null_is_the_same_as_absent() -> None:
    request = auth_pb2.CreateTokenRequest()
    fill(request, parse_object(b'{"name": "x", "expires_in_days": null, "scopes": null}'))
    assert not request.HasField("expires_in_days")
    assert list(request.scopes) == []


def test_a_wrong_item_of_a_list_is_named_by_its_place() -> None:
    with pytest.raises(Invalid) as caught:
        fill(auth_pb2.CreateTokenRequest(), parse_object(b'{"scopes": ["read", 7]}'))
    assert "scopes[1]" in sentence(caught.value)


def test_the_gateway_alone_fills_the_update_mask() -> None:
    with pytest.raises(Invalid):
        fill(
            conversations_pb2.UpdateConversationRequest(), parse_object(b'{"update_mask": {"paths": ["a"]}}')
        )


def test_raw_json_of_a_request_keeps_its_digits() -> None:
    setting = system_pb2.Setting()
    fill(
        setting,
        parse_object(b'{"value": {"a": [1.10, 1e400, 9007199254740993, {"b": null}], "c": "\xc3\xa9"}}'),
    )
    assert setting.value == '{"a":[1.10,1e400,9007199254740993,{"b":null}],"c":"é"}'


def test_queries_pass_over_unknown_names_and_empty_values() -> None:
    request = conversations_pb2.ListConversationsRequest()
    fill_query(request, [("agent_id", ""), ("limit", "3"), ("limit", "7"), ("who", "x")], ())
    assert not request.HasField("agent_id")
    assert request.limit == 7


@pytest.mark.parametrize("text", ["x", "1.5", "99999999999", "0x10", "1_000", "٣", "nan", "inf", "1" * 1000])
def test_a_number_in_a_query_that_is_none(text: str) -> None:
    with pytest.raises(Invalid):
        fill_query(conversations_pb2.ListConversationsRequest(), [("limit", text)], ())


def test_a_path_field_cannot_be_changed_by_the_query() -> None:
    request = conversations_pb2.GetConversationRequest(id="a")
    fill_query(request, [("id", "b"), ("limit", "2")], ("id",))
    assert request.id == "a"
