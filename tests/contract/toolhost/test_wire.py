"""Every message of the ToolHost contract survives the way over the wire."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from crew.v1 import toolhost_pb2 as pb
from hypothesis import given, settings
from hypothesis import strategies as st

from services.common.toolhost import exact_json, wire
from services.common.toolhost.contract import (
    Ask,
    CallContext,
    ImageBlock,
    NoOpinion,
    Refuse,
    Routine,
    ShellLimits,
    TextBlock,
    ToolResult,
    ToolSpec,
    WorkspaceGrant,
)

CONTEXT = CallContext(
    agent_id="coach",
    conversation_id="c1",
    run_id="r1",
    call_id="k1",
    workspace=WorkspaceGrant(
        root="/ws",
        write_paths=("data",),
        private_paths=("/home/browser",),
        shell_network=False,
        shell_write_paths=("out",),
        ask_patterns=("a",),
        allow_patterns=("b",),
        deny_patterns=("c",),
        closed_ports=(8765,),
        temp_dir="/tmp/x",
        limits=ShellLimits(cpu_seconds=1, memory_bytes=2, processes=3, file_bytes=4),
        umask=0o007,
    ),
    locale="vi",
    parent_call_id="p",
    channel="web",
    source="user",
    autonomous=True,
    budget_left_usd=0.5,
    output_chars=4000,
    settings={"a": 1},
)
SPEC = ToolSpec(
    name="t",
    description="d",
    parameters={"type": "object"},
    label="l",
    kind="change",
    effect="replace",
    requires_approval=True,
    parallel=True,
    replay_safe=True,
    deadline_seconds=5,
    judges=True,
    sizes_itself=True,
    prepares_arguments=True,
    prompt_snippet="s",
    guidelines=("g",),
    card="c",
)


def through(result: ToolResult) -> ToolResult:
    assembler = wire.ResultAssembler()
    for output in wire.result_to_wire(result):
        assert output.ByteSize() <= wire.PART_BYTES + wire.DETAILS_BYTES
        output = pb.RunOutput.FromString(output.SerializeToString())
        if output.WhichOneof("output") == "part":
            assembler.add(output.part)
        else:
            return assembler.finish(output.result)
    raise AssertionError("no result")


def test_context_survives_whole() -> None:
    for field in fields(CallContext):
        assert getattr(CONTEXT, field.name) != field.default
    assert wire.context_from_wire(wire.context_to_wire(CONTEXT)) == CONTEXT


def test_unset_context_has_the_contracts_defaults() -> None:
    context = wire.context_from_wire(pb.CallContext())
    assert context.locale == "en"
    assert context.budget_left_usd is None
    assert context.output_chars == 8000
    assert context.workspace.umask == 0o002
    assert context.workspace.limits == ShellLimits()
    assert context.workspace.shell_network is False


def test_budget_of_nothing_is_not_no_budget() -> None:
    context = replace(CONTEXT, budget_left_usd=0.0)
    assert wire.context_from_wire(wire.context_to_wire(context)).budget_left_usd == 0.0


def test_spec_survives_whole() -> None:
    assert wire.spec_from_wire(wire.spec_to_wire(SPEC)) == SPEC


def test_an_effect_left_out_is_taken_as_a_change() -> None:
    spec = wire.spec_from_wire(pb.ToolSpec(name="foreign"))
    assert (spec.effect, spec.kind, spec.label) == ("change", "change", "foreign")


@pytest.mark.parametrize(
    "verdict",
    [
        Ask("why", "rule", "preview", "token", "state"),
        Routine("rule", "state"),
        Refuse("text", "rule"),
        NoOpinion("preview", "token", "state"),
    ],
)
def test_verdicts_survive(verdict: Ask | Routine | Refuse | NoOpinion) -> None:
    assert wire.verdict_from_wire(wire.verdict_to_wire(verdict)) == verdict


def test_a_verdict_without_opinion_is_malformed() -> None:
    with pytest.raises(wire.MalformedMessage):
        wire.verdict_from_wire(pb.Verdict())


@pytest.mark.spec("PIP-114", "PIP-020")
def test_results_keep_content_and_details_apart() -> None:
    result = ToolResult(
        content=(TextBlock("a"), ImageBlock("p.png", "image/png"), TextBlock("")),
        details={"n": 1},
        is_error=True,
        outcome="unknown",
        cost_usd=0.25,
        unknown_cost_calls=2,
        terminate=True,
        new_tools=("x",),
        refused=True,
        absent=True,
    )
    assert through(result) == result
    empty = through(ToolResult())
    assert empty.content == ()
    assert empty.details == {}
    assert empty.cost_usd is None


@pytest.mark.spec("PIP-114")
def test_a_host_that_leaves_content_out_gives_an_empty_list() -> None:
    result = wire.ResultAssembler().finish(pb.RunResult())
    assert (result.content, result.details, result.outcome) == ((), {}, "unknown")


def test_a_large_result_goes_in_parts_and_comes_back_equal() -> None:
    long = "ế" * (wire.PART_BYTES // 2)
    result = ToolResult(content=(TextBlock("head"), TextBlock(long), TextBlock("tail")), details={"n": 1})
    assert len(list(wire.result_to_wire(result))) > 3
    assert through(result) == result


def test_results_without_measure_are_refused_on_both_sides() -> None:
    with pytest.raises(ValueError, match="result over"):
        list(wire.result_to_wire(ToolResult(content=(TextBlock("x" * (wire.RESULT_BYTES + 1)),))))
    with pytest.raises(ValueError, match="details over"):
        list(wire.result_to_wire(ToolResult(details={"x": "y" * wire.DETAILS_BYTES})))
    assembler = wire.ResultAssembler()
    part = pb.ContentBlock(text="x" * wire.PART_BYTES, continues=True)
    for _ in range(wire.RESULT_BYTES // wire.PART_BYTES - 1):
        assembler.add(part)
    with pytest.raises(wire.MalformedMessage):
        assembler.add(part)


def test_a_text_left_open_is_malformed() -> None:
    assembler = wire.ResultAssembler()
    assembler.add(pb.ContentBlock(text="a", continues=True))
    with pytest.raises(wire.MalformedMessage):
        assembler.finish(pb.RunResult())


@pytest.mark.spec("PIP-070")
@pytest.mark.parametrize(
    "text",
    [
        '{"a":1.10}',
        '{"a":1E400}',
        '{"a":12345678901234567890.50}',
        '{"a":12345678901234567890}',
        '{"a":-0}',
        '{"a":[{"b":1e-7}]}',
        '{"a":"“curly” \u00a0\\n"}',
    ],
)
def test_digits_and_characters_stay_as_written(text: str) -> None:
    assert wire.arguments_to_wire(wire.arguments_from_wire(text)) == text


@pytest.mark.parametrize("text", ["[]", "1", "{", '{"a":NaN}', '{"a":"\\ud800"}', "[" * 100_000, '{"a":1}x'])
def test_what_is_not_a_json_object_is_malformed(text: str) -> None:
    with pytest.raises(wire.MalformedMessage):
        wire.arguments_from_wire(text)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.text(), json_values))
def test_any_object_survives(value: dict[str, object]) -> None:
    import json

    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assert exact_json.loads(exact_json.dumps(exact_json.loads(text))) == value
