import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.storable import storable, storable_json


@pytest.mark.spec("FLD-014")
@pytest.mark.parametrize(
    ("given_text", "expected", "replaced"),
    [
        ("plain đủ dấu 🙂", "plain đủ dấu 🙂", 0),
        ("a\0b", "a\ufffdb", 1),
        ("\ud83d", "\ufffd", 1),
        ("\ud83d\ude42", "🙂", 0),
        ("\ude42\ud83d", "\ufffd\ufffd", 2),
        ("x\ud83d\ud83d\ude42y\0", "x\ufffd🙂y\ufffd", 2),
    ],
)
def test_text_becomes_storable(given_text: str, expected: str, replaced: int) -> None:
    assert storable(given_text) == (expected, replaced)


@pytest.mark.spec("FLD-014")
@pytest.mark.parametrize(
    ("given_text", "expected", "replaced"),
    [
        (r'{"a":"\u0000"}', r'{"a":"\ufffd"}', 1),
        (r'{"a":"\\u0000"}', r'{"a":"\\u0000"}', 0),
        (r'{"a":"\ud83d\ude42"}', r'{"a":"\ud83d\ude42"}', 0),
        (r'{"a":"\ud83d x"}', r'{"a":"\ufffd x"}', 1),
        (r'{"a":1.10,"b":12345678901234567890123}', r'{"a":1.10,"b":12345678901234567890123}', 0),
    ],
)
def test_escapes_in_json_text_become_storable(given_text: str, expected: str, replaced: int) -> None:
    assert storable_json(given_text) == (expected, replaced)


@pytest.mark.spec("FLD-014")
@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_any_text_can_be_stored_and_sent(text: str) -> None:
    for clean in (storable(text)[0], json.loads(storable_json(json.dumps(text))[0])):
        assert "\0" not in clean
        clean.encode("utf-8")
