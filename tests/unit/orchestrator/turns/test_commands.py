import pytest

from services.common.errors import Invalid, TooLarge
from services.orchestrator.turns import commands


@pytest.mark.spec("TRN-072", "TRN-077", "TRN-079", "GTW-067")
@pytest.mark.parametrize(
    ("written", "text", "kind"),
    [
        ("hello", "hello", "follow_up"),
        ("/steer look at B", "look at B", "steer"),
        ("  /steer two\nlines ", "two\nlines", "steer"),
        ("/steering wheel", "/steering wheel", "follow_up"),
        ("/tmp/x", "/tmp/x", "follow_up"),
        ("say /steer", "say /steer", "follow_up"),
    ],
)
def test_what_a_message_asks_for(written: str, text: str, kind: str) -> None:
    assert commands.read(written) == commands.Spoken(text, kind)  # type: ignore[arg-type]


@pytest.mark.spec("TRN-048", "TRN-078")
@pytest.mark.parametrize(
    ("written", "reason"),
    [("", "EMPTY_MESSAGE"), (" \n\t", "EMPTY_MESSAGE"), ("/steer", "BARE_STEER"), ("/steer  ", "BARE_STEER")],
)
def test_what_is_no_message(written: str, reason: str) -> None:
    with pytest.raises(Invalid) as refused:
        commands.read(written)
    assert refused.value.reason == reason
    assert refused.value.http_status == 422


def test_the_longest_message_is_taken_and_one_more_character_is_not() -> None:
    assert commands.read("x" * commands.MESSAGE_CHARS).kind == "follow_up"
    with pytest.raises(TooLarge) as refused:
        commands.read("x" * (commands.MESSAGE_CHARS + 1))
    assert refused.value.http_status == 413
    assert refused.value.values["limit"] == 200_000


@pytest.mark.spec("TRN-047", "GTW-050")
@pytest.mark.parametrize(
    "source", ["chat", "telegram", "web", "job", "job:a/b", "delegate:x", "memory:consolidate"]
)
def test_the_servers_own_names_are_refused_as_sources(source: str) -> None:
    with pytest.raises(Invalid) as refused:
        commands.check_source(source)
    assert refused.value.reason == "RESERVED_SOURCE"


@pytest.mark.spec("TRN-047")
@pytest.mark.parametrize("source", ["api", "selftest", "slack:team", "api:zalo", "jobs"])
def test_any_other_label_is_taken(source: str) -> None:
    assert commands.check_source(source) == source


@pytest.mark.spec("GTW-084")
@pytest.mark.parametrize("request_id", ["", "x" * 101, "tiếng", "a\nb", "\x7f"])
def test_a_request_id_is_short_and_plain(request_id: str) -> None:
    with pytest.raises(Invalid):
        commands.check_request_id(request_id)
    assert commands.check_request_id("tab-1 #2") == "tab-1 #2"


@pytest.mark.parametrize("channel", ["web", "telegram:1", "api:", "job", "api:a\nb", "api:" + "x" * 80])
def test_programs_speak_on_their_own_channels_only(channel: str) -> None:
    with pytest.raises(Invalid):
        commands.check_channel(channel)
    assert commands.check_channel("api:relay") == "api:relay"
