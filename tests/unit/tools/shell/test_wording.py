"""Every text of the shell is there in every language, with the same placeholders."""

from __future__ import annotations

import json
import string
from typing import get_args

import pytest

from services.common.wording import Locale, load
from services.tools.shell.sandbox.report import SandboxReport, Shortcoming
from services.tools.shell.sandbox.shell_sandbox import ShellSandbox
from services.tools.shell.shell_run import ShellRun

PREFIXES = ("shell.", "error.shell.", "tool.shell_run.")


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


@pytest.mark.spec("PIP-005", "TLS-015")
def test_both_languages_have_the_same_texts_and_placeholders() -> None:
    texts = load("tools")
    for prefix in PREFIXES:
        keys = texts.keys("en", prefix)
        assert keys
        assert sorted(keys) == sorted(texts.keys("vi", prefix))
        for key in keys:
            raw = {locale: texts._texts[locale][key] for locale in get_args(Locale)}
            assert placeholders(raw["en"]) == placeholders(raw["vi"]), key
            assert raw["en"] != raw["vi"] or key.endswith(".examples"), key


@pytest.mark.spec("TLS-433")
@pytest.mark.parametrize("locale", get_args(Locale))
def test_the_description_is_complete_and_its_examples_fit_the_schema(locale: Locale) -> None:
    spec = ShellRun(ShellSandbox()).spec(locale)
    for said in ("workspace_read", "900", "120", "4", "timeout_s"):
        assert said in spec.description
    gone = {"en": "gone in the next", "vi": "sẽ mất ở lần sau"}
    assert gone[locale] in spec.description
    examples = [json.loads(line) for line in spec.description.splitlines() if line.startswith("{")]
    assert 1 <= len(examples) <= 5
    for example in examples:
        assert set(example) <= set(spec.parameters["properties"])
        assert isinstance(example["command"], str)
    assert all("description" in parameter for parameter in spec.parameters["properties"].values())
    assert "shell_run" in spec.guidelines[0]
    assert spec.requires_approval
    assert not spec.parallel
    assert not spec.replay_safe


@pytest.mark.spec("TLS-286", "TLS-308")
@pytest.mark.parametrize("locale", get_args(Locale))
def test_the_report_says_which_form_why_not_the_other_and_what_is_not_held(locale: Locale) -> None:
    report = SandboxReport(
        "landlock",
        "container",
        shortcomings={"bubblewrap": Shortcoming("refused", {"reason": "no namespaces"})},
        network_shortcoming=Shortcoming("kernel_ports", {"abi": 3, "needed": 4}),
    )
    sentence = report.sentence(locale)
    assert "no namespaces" in sentence
    assert "deploy/compose.yaml" in sentence
    assert {"en": "changes of mode and times", "vi": "đổi quyền và thời gian"}[locale] in sentence
    assert "bwrap" in SandboxReport(None, "none").sentence(locale)
