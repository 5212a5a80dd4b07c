"""``config.yaml`` and the environment over it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.settings import CrewConfig, LoadedConfig, load_config
from services.common.start import StartError


def load(tmp_path: Path, text: str = "", **environ: str) -> LoadedConfig:
    file = tmp_path / "config.yaml"
    file.write_text(text, "utf-8")
    return load_config(file, environ)


def refusal(tmp_path: Path, text: str = "", **environ: str) -> str:
    with pytest.raises(StartError) as caught:
        load(tmp_path, text, **environ)
    assert caught.value.text("vi") != caught.value.text("en")
    return str(caught.value)


@pytest.mark.spec("AGT-017")
@pytest.mark.parametrize("text", ["", "\n\n", "# only words\n", "---\n", "null\n"])
def test_an_empty_file_means_every_default(tmp_path: Path, text: str) -> None:
    loaded = load(tmp_path, text)
    assert loaded.values == CrewConfig()
    assert set(loaded.sources.values()) == {"default"}


@pytest.mark.spec("AGT-017")
def test_a_missing_file_means_every_default(tmp_path: Path) -> None:
    assert load_config(tmp_path / "none.yaml", {}).values == CrewConfig()


def test_the_defaults_are_those_of_the_table() -> None:
    values = CrewConfig()
    assert values.routes == ("openrouter:deepseek/deepseek-v4-flash",)
    assert (values.cost_cap_usd, values.max_steps, values.autonomous_default) == (0.5, 12, False)
    assert (values.approval_ttl_seconds, values.tool_output_chars, values.language) == (600, 8000, "en")
    assert (values.openrouter_providers, values.openrouter_provider_fallbacks) == ((), True)
    assert (values.shell_allow_patterns, values.tool_execution, values.umask) == ((), "parallel", 0o002)
    assert (values.budgets.crew.day, values.budgets.crew.month) == (5.0, None)
    assert (values.keep_days, values.audit_months) == (90, 24)


@pytest.mark.spec("FLD-016")
def test_a_month_leaves_the_crews_day_as_it_is_and_null_takes_it_away(tmp_path: Path) -> None:
    month = load(tmp_path, "budgets: {crew: {month: 50}}\n").values.budgets
    assert (month.crew.day, month.crew.month) == (5.0, 50.0)
    none = load(tmp_path, "budgets: {crew: {day: null}, agents: {ann: {day: 1}}}\n").values.budgets
    assert (none.crew.day, none.agents["ann"].day, none.agents["ann"].month) == (None, 1.0, None)


@pytest.mark.spec("FLD-052")
def test_the_environment_sets_the_months_of_the_audit_trail(tmp_path: Path) -> None:
    assert load(tmp_path, "audit_months: 3\n").values.audit_months == 3
    assert load(tmp_path, "audit_months: 3\n", MY_AGENT_AUDIT_MONTHS="60").values.audit_months == 60


@pytest.mark.spec("AGT-027")
def test_the_built_in_ask_list() -> None:
    assert "|".join(CrewConfig().shell_ask_patterns) == (
        "rm -rf|rm -r |sudo || sh|| bash|mkfs|git push --force|git reset --hard|> /dev/|chmod -R|launchctl"
    )


@pytest.mark.spec("AGT-015", "AGT-037")
def test_the_environment_wins_and_each_value_knows_its_source(tmp_path: Path) -> None:
    loaded = load(tmp_path, "max_steps: 3\nlanguage: vi\n", MY_AGENT_MAX_STEPS="7")
    assert (loaded.values.max_steps, loaded.values.language) == (7, "vi")
    assert loaded.source("max_steps") == "env"
    assert loaded.source("language") == "config"
    assert loaded.source("routes") == "default"


@pytest.mark.parametrize(
    ("variable", "text", "key", "value"),
    [
        ("MY_AGENT_ROUTES", "fake:echo, ollama:qwen", "routes", ("fake:echo", "ollama:qwen")),
        ("MY_AGENT_COST_CAP_USD", "0", "cost_cap_usd", 0.0),
        ("MY_AGENT_COST_CAP_USD", "1.25", "cost_cap_usd", 1.25),
        *[("MY_AGENT_AUTONOMOUS", word, "autonomous_default", True) for word in ("1", "true", "YES", "on")],
        *[("MY_AGENT_AUTONOMOUS", word, "autonomous_default", False) for word in ("0", "no", "off", "")],
        ("MY_AGENT_APPROVAL_TTL_SECONDS", "1", "approval_ttl_seconds", 1),
        ("MY_AGENT_SHELL_ASK_PATTERNS", "git push;rm -r ", "shell_ask_patterns", ("git push", "rm -r ")),
        ("MY_AGENT_SHELL_ASK_PATTERNS", "", "shell_ask_patterns", ()),
        ("MY_AGENT_VISION_ROUTES", "", "vision_routes", ()),
        ("MY_AGENT_TOOL_OUTPUT_CHARS", "1", "tool_output_chars", 1),
        ("MY_AGENT_WEB_URL", " https://crew.example/ ", "web_url", "https://crew.example"),
        ("MY_AGENT_TIMEZONE", "Asia/Ho_Chi_Minh", "timezone", "Asia/Ho_Chi_Minh"),
        ("MY_AGENT_OPENROUTER_PROVIDERS", "a, b", "openrouter_providers", ("a", "b")),
        ("MY_AGENT_OPENROUTER_PROVIDER_FALLBACKS", "off", "openrouter_provider_fallbacks", False),
        ("MY_AGENT_WORKSPACES_DIR", "/workspaces", "workspaces_dir", Path("/workspaces")),
        ("MY_AGENT_UMASK", "0027", "umask", 0o027),
    ],
)
@pytest.mark.spec("AGT-015", "AGT-026")
def test_each_variable_is_read_as_its_setting(
    tmp_path: Path, variable: str, text: str, key: str, value: object
) -> None:
    assert getattr(load(tmp_path, **{variable: text}).values, key) == value


@pytest.mark.parametrize("variable", ["MY_AGENT_ROUTES", "MY_AGENT_LANGUAGE", "MY_AGENT_MAX_STEPS"])
def test_a_variable_that_a_deployment_hands_on_unfilled_is_not_set(tmp_path: Path, variable: str) -> None:
    loaded = load(tmp_path, "max_steps: 4\n", **{variable: ""})
    assert loaded.values.max_steps == 4
    assert "env" not in loaded.sources.values()


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("max_step", "max_steps"),
        ("rout", "routes"),
        ("langauge", "language"),
        ("cost_cap", "cost_cap_usd"),
        ("budgets: {crew: {dai: 1}}\nx", None),
    ],
)
@pytest.mark.spec("AGT-016")
def test_an_unknown_key_stops_the_start_and_names_the_nearest(
    tmp_path: Path, key: str, nearest: str | None
) -> None:
    sentence = refusal(tmp_path, f"{key}: 1\n")
    assert key.split(":")[0] in sentence or "x" in sentence
    if nearest is not None:
        assert sentence.endswith(f"did you mean {nearest}?")
    assert str(tmp_path / "config.yaml") in sentence


@pytest.mark.spec("AGT-016", "AGT-019")
@pytest.mark.parametrize("key", ["desktop_enabled", "database_url", "host", "port", "1", "telegram"])
def test_what_is_no_setting_here_is_refused(tmp_path: Path, key: str) -> None:
    assert "there is no setting named" in refusal(tmp_path, f"? {key}\n: 1\n")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("max_steps: 0", "max_steps must be at least 1"),
        ("max_steps: '3'", "max_steps must be a whole number"),
        ("max_steps: 3.0", "max_steps must be a whole number"),
        ("max_steps: true", "max_steps must be a whole number"),
        ("approval_ttl_seconds: 0", "must be at least 1"),
        ("tool_output_chars: 0", "must be at least 1"),
        ("cost_cap_usd: -0.01", "must be at least 0"),
        ("cost_cap_usd: .nan", "cost_cap_usd must be"),
        ("cost_cap_usd: .inf", "must be a number"),
        ("autonomous_default: 1", "must be true or false"),
        ("language: fr", "language must be en or vi"),
        ("timezone: Mars/Olympus", "must be an IANA time zone"),
        ("timezone: ../../etc/passwd", "must be an IANA time zone"),
        ("shell_ask_patterns: rm", "shell_ask_patterns must be a list"),
        ("shell_allow_patterns: {a: b}", "must be a list"),
        ("shell_ask_patterns: [1]", "must be text"),
        ("routes: [nothing]", "provider:model"),
        ("routes: 'a b'", "provider:model"),
        ("tool_execution: fast", "must be parallel or sequential"),
        ("umask: 0o777", "must be a mask"),
        ("workspaces_dir: here", "must be an absolute path"),
        (
            "tool_hosts: {a-b: {address: x:1, token_file: t}, A_b: {address: y:1, token_file: t}}",
            "differ only",
        ),
        ("tool_hosts: {-a: {address: x:1, token_file: t}}", "not allowed"),
        ("tool_hosts: {a: {address: x:1}}", "tool_hosts.a.token_file is missing"),
        ("prices: {'ollama:x': {input: -1, output: 0}}", "must be at least 0"),
        ("budgets: 3", "must be a group"),
        ("budgets: {crew: {day: -1}}", "budgets.crew.day must be at least 0"),
        ("budgets: {agents: {ann: {month: '5'}}}", "budgets.agents.ann.month must be a number"),
        ("budgets: {crew: {day: 1000001}}", "must be at most 1000000"),
        ("cost_cap_usd: 1000001", "must be at most 1000000"),
        ("prices: {'ollama:x': {input: 0, output: 0, max_output_tokens: 0}}", "must be at least 1"),
        ("audit_months: 0", "audit_months must be at least 1"),
    ],
)
@pytest.mark.spec("AGT-020", "AGT-022", "AGT-024", "AGT-029")
def test_a_wrong_value_stops_the_start_and_names_the_key(tmp_path: Path, text: str, words: str) -> None:
    assert words in refusal(tmp_path, text)


@pytest.mark.spec("AGT-021", "GTW-213")
@pytest.mark.parametrize(
    "address",
    [
        *(
            "ftp://h",
            "crew.example",
            "//h",
            "https://",
            "https://user@h",
            "https://u:secretword@h",
            "https://h?q=1",
        ),
        *(
            "https://h#f",
            "https://h?",
            "https://h:0",
            "https://h:99999",
            "https://h/a b",
            "javascript:alert(1)",
        ),
    ],
)
def test_an_address_that_is_not_plain_is_refused_without_being_shown(tmp_path: Path, address: str) -> None:
    sentence = refusal(tmp_path, f"web_url: '{address}'")
    assert "web_url" in sentence
    assert address not in sentence


@pytest.mark.spec("AGT-025")
def test_patterns_that_let_everything_through_are_dropped_one_by_one(tmp_path: Path) -> None:
    loaded = load(tmp_path, "shell_allow_patterns: ['*', 'git status', '.*', '-', '--', x, '&&', 'ls ']")
    assert loaded.values.shell_allow_patterns == ("git status", "ls ")
    assert len(loaded.warnings) == 6
    assert all("would let every command through" in warning for warning in loaded.warnings)


@pytest.mark.parametrize(
    "text",
    [
        "a: [",
        "a: 1\na: 2\n",
        "- 1\n",
        "word",
        "a: !!python/object/apply:os.system ['true']\n",
        "a: &x [*x]\n",
        "? {a: b}\n: 1\n",
        "\x00",
        "[" * 3000,
    ],
)
def test_what_is_no_map_of_settings_is_refused_in_one_sentence(tmp_path: Path, text: str) -> None:
    sentence = refusal(tmp_path, text)
    assert str(tmp_path) in sentence
    assert "\n" not in sentence


def test_a_file_that_is_not_text_or_too_large_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(StartError, match="not UTF-8"):
        load_config(file, {})
    file.write_bytes(b"#" * (1024 * 1024 + 1))
    with pytest.raises(StartError, match="larger than"):
        load_config(file, {})


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_with_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    file = tmp_path_factory.getbasetemp() / "any.yaml"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        sentence = str(load_config(file, {}).values and file)
    except StartError as error:
        sentence = str(error)
    assert str(file) in sentence
