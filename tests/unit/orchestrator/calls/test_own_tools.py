"""What a model is told of the orchestrator's own tools."""

from __future__ import annotations

import grpc
import pytest

from services.common.wording import Locale
from services.orchestrator.hosts.own import AskUser, ProgressNote
from services.orchestrator.hosts.retrying import Failure, failure_of

Code = grpc.StatusCode


@pytest.mark.spec("TRN-347", "TRN-220")
@pytest.mark.parametrize(("locale", "fork"), [("en", "real fork"), ("vi", "thật sự phải chọn")])
def test_a_question_is_for_a_real_fork_and_a_job_gives_a_default(locale: Locale, fork: str) -> None:
    spec = AskUser().spec(locale)
    assert fork in spec.description
    assert "`default`" in spec.description
    assert set(spec.parameters["properties"]) == {"question", "options", "default"}
    assert spec.parameters["required"] == ["question"]


@pytest.mark.spec("TRN-348")
@pytest.mark.parametrize("locale", ["en", "vi"])
def test_a_note_is_one_short_line_and_no_memory(locale: Locale) -> None:
    spec = ProgressNote().spec(locale)
    assert "`memory_save`" in spec.description
    assert set(spec.parameters["properties"]) == {"text"}


@pytest.mark.spec("TLS-069")
@pytest.mark.parametrize(
    ("code", "connected", "failure"),
    [
        (Code.RESOURCE_EXHAUSTED, True, "refused_before"),
        (Code.RESOURCE_EXHAUSTED, False, "refused_before"),
        (Code.UNAVAILABLE, False, "refused_before"),
        (Code.UNAVAILABLE, True, "lost"),
        (Code.DEADLINE_EXCEEDED, True, "server_error"),
        (Code.INTERNAL, True, "server_error"),
        (Code.UNKNOWN, True, "server_error"),
        (Code.INVALID_ARGUMENT, True, "other"),
        (Code.PERMISSION_DENIED, True, "other"),
        (Code.NOT_FOUND, True, "other"),
        (Code.DATA_LOSS, True, "other"),
    ],
)
def test_what_a_status_says_about_the_effect(code: Code, connected: bool, failure: Failure) -> None:
    assert failure_of(code, connected=connected) == failure
