"""What goes to a host and what it says before it runs: contexts, arguments, descriptions, verdicts."""

from __future__ import annotations

from typing import assert_never, cast, get_args

from crew.v1 import toolhost_pb2 as pb

from services.common.toolhost import exact_json
from services.common.toolhost.contract import (
    DEFAULT_DEADLINE_SECONDS,
    Arguments,
    Ask,
    CallContext,
    Effect,
    Isolation,
    Mode,
    NoOpinion,
    Refuse,
    Routine,
    ShellLimits,
    ToolKind,
    ToolSpec,
    Verdict,
    WorkspaceGrant,
)
from services.common.wording import locale_of

# Above this a result is sent in parts (half of what a channel takes in one message).
PART_BYTES = 8 * 1024**2
# The most that the JSON text of one call's arguments may hold.
ARGUMENTS_BYTES = PART_BYTES

_KINDS: dict[ToolKind, pb.ToolKind] = {
    kind: cast("pb.ToolKind", pb.ToolKind.Value(f"TOOL_KIND_{kind.upper()}")) for kind in get_args(ToolKind)
}
_EFFECTS: dict[Effect, pb.ToolEffect] = {
    effect: cast("pb.ToolEffect", pb.ToolEffect.Value(f"TOOL_EFFECT_{effect.upper()}"))
    for effect in get_args(Effect)
}
_KIND_NAMES = {number: kind for kind, number in _KINDS.items()}
_EFFECT_NAMES = {number: effect for effect, number in _EFFECTS.items()}


class MalformedMessage(ValueError):
    """The other side sent a message this contract has no meaning for."""


# --- context -----------------------------------------------------------------------------------


def context_to_wire(context: CallContext) -> pb.CallContext:
    """The message for `context`."""
    return pb.CallContext(
        agent_id=context.agent_id,
        conversation_id=context.conversation_id,
        run_id=context.run_id,
        call_id=context.call_id,
        parent_call_id=context.parent_call_id,
        channel=context.channel,
        source=context.source,
        locale=context.locale,
        autonomous=context.autonomous,
        workspace=_grant_to_wire(context.workspace),
        budget_left_usd=context.budget_left_usd,
        output_chars=context.output_chars,
        settings_json=exact_json.dumps(context.settings),
    )


def context_from_wire(message: pb.CallContext) -> CallContext:
    """The context of `message`; what is unset has the contract's default.

    Raises:
        MalformedMessage: The settings are not a JSON object.
    """
    return CallContext(
        agent_id=message.agent_id,
        conversation_id=message.conversation_id,
        run_id=message.run_id,
        call_id=message.call_id,
        parent_call_id=message.parent_call_id,
        channel=message.channel,
        source=message.source,
        locale=locale_of(message.locale),
        autonomous=message.autonomous,
        workspace=_grant_from_wire(message.workspace),
        budget_left_usd=message.budget_left_usd if message.HasField("budget_left_usd") else None,
        output_chars=message.output_chars or 8000,
        settings=arguments_from_wire(message.settings_json),
    )


def _grant_to_wire(grant: WorkspaceGrant) -> pb.WorkspaceGrant:
    return pb.WorkspaceGrant(
        root=grant.root,
        write_paths=grant.write_paths,
        private_paths=grant.private_paths,
        shell_network=grant.shell_network,
        shell_write_paths=grant.shell_write_paths,
        ask_patterns=grant.ask_patterns,
        allow_patterns=grant.allow_patterns,
        deny_patterns=grant.deny_patterns,
        closed_ports=grant.closed_ports,
        temp_dir=grant.temp_dir,
        limits=pb.ShellLimits(
            cpu_seconds=grant.limits.cpu_seconds,
            memory_bytes=grant.limits.memory_bytes,
            processes=grant.limits.processes,
            file_bytes=grant.limits.file_bytes,
        ),
        umask=grant.umask,
    )


def _grant_from_wire(message: pb.WorkspaceGrant) -> WorkspaceGrant:
    default = ShellLimits()
    return WorkspaceGrant(
        root=message.root,
        write_paths=tuple(message.write_paths),
        private_paths=tuple(message.private_paths),
        shell_network=message.shell_network,
        shell_write_paths=tuple(message.shell_write_paths),
        ask_patterns=tuple(message.ask_patterns),
        allow_patterns=tuple(message.allow_patterns),
        deny_patterns=tuple(message.deny_patterns),
        closed_ports=tuple(message.closed_ports),
        temp_dir=message.temp_dir,
        limits=ShellLimits(
            cpu_seconds=message.limits.cpu_seconds or default.cpu_seconds,
            memory_bytes=message.limits.memory_bytes or default.memory_bytes,
            processes=message.limits.processes or default.processes,
            file_bytes=message.limits.file_bytes or default.file_bytes,
        ),
        umask=message.umask or 0o002,
    )


# --- arguments ---------------------------------------------------------------------------------


def arguments_to_wire(arguments: Arguments) -> str:
    """JSON text of a call's arguments, numbers with the digits they came with.

    Raises:
        ValueError: Over `ARGUMENTS_BYTES`, or something JSON has no form for.
    """
    text = exact_json.dumps(arguments)
    if len(text.encode()) > ARGUMENTS_BYTES:
        raise ValueError(f"arguments over {ARGUMENTS_BYTES} bytes")
    return text


def arguments_from_wire(text: str) -> Arguments:
    """The arguments in `text`.

    Raises:
        MalformedMessage: Not a JSON object.
    """
    try:
        return exact_json.loads_object(text)
    except ValueError as error:
        raise MalformedMessage(str(error)) from None


# --- descriptions ------------------------------------------------------------------------------


def spec_to_wire(spec: ToolSpec) -> pb.ToolSpec:
    """The message for `spec`."""
    return pb.ToolSpec(
        name=spec.name,
        description=spec.description,
        parameters_json=exact_json.dumps(spec.parameters),
        label=spec.label,
        requires_approval=spec.requires_approval,
        parallel=spec.parallel,
        replay_safe=spec.replay_safe,
        effect=_EFFECTS[spec.effect],
        kind=_KINDS[spec.kind],
        deadline_seconds=spec.deadline_seconds,
        judges=spec.judges,
        sizes_itself=spec.sizes_itself,
        prepares_arguments=spec.prepares_arguments,
        two_phase=spec.two_phase,
        prompt_snippet=spec.prompt_snippet,
        guidelines=spec.guidelines,
        card=spec.card,
    )


def spec_from_wire(message: pb.ToolSpec) -> ToolSpec:
    """The spec of `message`. An effect or kind left out is taken as a change, the careful reading.

    Raises:
        MalformedMessage: The parameters are not a JSON object.
    """
    return ToolSpec(
        name=message.name,
        description=message.description,
        parameters=arguments_from_wire(message.parameters_json),
        label=message.label or message.name,
        kind=_KIND_NAMES.get(message.kind, "change"),
        effect=_EFFECT_NAMES.get(message.effect, "change"),
        requires_approval=message.requires_approval,
        parallel=message.parallel,
        replay_safe=message.replay_safe,
        deadline_seconds=message.deadline_seconds or DEFAULT_DEADLINE_SECONDS,
        judges=message.judges,
        sizes_itself=message.sizes_itself,
        prepares_arguments=message.prepares_arguments,
        two_phase=message.two_phase,
        prompt_snippet=message.prompt_snippet,
        guidelines=tuple(message.guidelines),
        card=message.card,
    )


def mode_from_wire(mode: str) -> Mode:
    """The agent's mode; anything unknown is the one that gets fewer tools."""
    return "work" if mode == "work" else "assistant"


def isolation_from_wire(isolation: str) -> Isolation:
    """The isolation a host states; anything unknown counts as none."""
    for level in get_args(Isolation):
        if isolation == level:
            return level  # type: ignore[no-any-return]
    return "none"


# --- verdicts ----------------------------------------------------------------------------------


def verdict_to_wire(verdict: Verdict) -> pb.Verdict:
    """The message for `verdict`."""
    match verdict:
        case Ask():
            return pb.Verdict(
                ask=pb.Verdict.Ask(reason=verdict.reason, rule=verdict.rule),
                preview=verdict.preview,
                token=verdict.token,
                target_state=verdict.target_state,
            )
        case Routine():
            return pb.Verdict(
                routine=pb.Verdict.Routine(rule=verdict.rule), target_state=verdict.target_state
            )
        case Refuse():
            return pb.Verdict(refuse=pb.Verdict.Refuse(text=verdict.text, rule=verdict.rule))
        case NoOpinion():
            return pb.Verdict(
                none=pb.Verdict.NoOpinion(),
                preview=verdict.preview,
                token=verdict.token,
                target_state=verdict.target_state,
            )
        case _:
            assert_never(verdict)


def verdict_from_wire(message: pb.Verdict) -> Verdict:
    """The verdict of `message`.

    Raises:
        MalformedMessage: It holds no opinion at all, which is not the same as "no opinion": a
            host that could not judge means that a person is asked (TLS-021).
    """
    match message.WhichOneof("opinion"):
        case "ask":
            return Ask(
                reason=message.ask.reason,
                rule=message.ask.rule,
                preview=message.preview,
                token=message.token,
                target_state=message.target_state,
            )
        case "routine":
            return Routine(rule=message.routine.rule, target_state=message.target_state)
        case "refuse":
            return Refuse(text=message.refuse.text, rule=message.refuse.rule)
        case "none":
            return NoOpinion(preview=message.preview, token=message.token, target_state=message.target_state)
        case _:
            raise MalformedMessage("a verdict without an opinion")
