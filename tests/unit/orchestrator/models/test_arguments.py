import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.wording import load
from services.orchestrator.models.arguments import CONTEXT_CHARS, checked_arguments

WORDS = load("orchestrator")


@pytest.mark.spec("TRN-129")
@pytest.mark.parametrize("blank", ["", "  ", "\n"])
def test_blank_arguments_are_an_empty_object(blank: str) -> None:
    assert checked_arguments(blank, truncated=False) == ("{}", None)


@pytest.mark.parametrize(
    "text", ['{"a": 1.10}', ' {"a": 12345678901234567890123}\n', '{"a": "\\ud83d\\ude42"}']
)
def test_an_object_stays_as_written(text: str) -> None:
    assert checked_arguments(text, truncated=False) == (text.strip(), None)


@pytest.mark.spec("TRN-129")
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("[1]", "list"),
        ('"x"', "string"),
        ("5", "number"),
        ("1.5", "number"),
        ("true", "boolean"),
        ("null", "null"),
    ],
)
def test_another_type_is_named(text: str, kind: str) -> None:
    arguments, broken = checked_arguments(text, truncated=False)
    assert arguments == "{}"
    assert broken is not None
    for locale in ("en", "vi"):
        sentence = WORDS.text(locale, broken.key, **broken.values)
        assert f" {kind};" in sentence
        assert f" {len(text)} " in sentence


@pytest.mark.spec("TRN-128")
@pytest.mark.parametrize(
    ("text", "position"),
    [
        ('{"a": 1,,}', 8),
        ('{"a": "line\nbreak"}', 11),
        ("{'a': 1}", 1),
        ('{"đủ": x}', 7),
        ('{"a": NaN}', 6),
        ('{"a": 1} and more', 9),
        ("rm -rf /", 0),
        ('{"a":' * 2000, None),
    ],
)
def test_broken_json_is_answered_with_length_place_and_surroundings(text: str, position: int | None) -> None:
    arguments, broken = checked_arguments(text, truncated=False)
    assert arguments == "{}"
    assert broken is not None
    assert (broken.length, broken.truncated) == (len(text), False)
    assert position is None or broken.position == position
    for locale in ("en", "vi"):
        sentence = WORDS.text(locale, broken.key, **broken.values)
        assert str(len(text)) in sentence
        assert str(broken.position) in sentence
        assert broken.context in sentence


@pytest.mark.spec("TRN-128")
def test_control_characters_around_the_spot_are_written_out() -> None:
    _, broken = checked_arguments('{"a": "x\ny\u202e"}', truncated=False)
    assert broken is not None
    assert "x<U+000A>y<U+202E>" in broken.context


@pytest.mark.spec("TRN-130")
def test_cut_off_arguments_say_where_the_text_stopped_and_to_split() -> None:
    text = '{"content": "' + "w" * 500
    arguments, broken = checked_arguments(text, truncated=True)
    assert arguments == "{}"
    assert broken is not None
    assert (broken.position, broken.truncated) == (len(text), True)
    assert broken.context == "w" * CONTEXT_CHARS
    assert "smaller calls" in WORDS.text("en", broken.key, **broken.values)
    assert "nhỏ hơn" in WORDS.text("vi", broken.key, **broken.values)


def test_whole_arguments_at_the_limit_are_not_called_broken() -> None:
    assert checked_arguments('{"a": 1}', truncated=True) == ('{"a": 1}', None)


@pytest.mark.spec("TRN-128")
@given(st.text(), st.booleans())
def test_whatever_comes_gives_an_object_and_a_short_context(text: str, truncated: bool) -> None:
    arguments, broken = checked_arguments(text, truncated=truncated)
    assert isinstance(json.loads(arguments), dict)
    if broken is not None:
        assert 0 <= broken.position <= broken.length
        assert broken.context.isprintable()
        # Each character is written with at most ten.
        assert len(broken.context) <= 2 * CONTEXT_CHARS * 10
