"""One model call of a turn: the prompt, the stream to watchers, the steps of its routes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Any, assert_never

from crew.v1 import conversations_pb2, events_pb2

from services.common.times import utc_now
from services.common.wording import Catalogue
from services.orchestrator.calls.toolbox import Toolbox
from services.orchestrator.context.prompt import Prompt, assemble
from services.orchestrator.context.texts import read_texts
from services.orchestrator.models.contract import (
    CallDelta,
    Completed,
    ModelRequest,
    Reply,
    RouteGivenUp,
    Served,
    Started,
    TextDelta,
    Thinking,
    TooLargeForModel,
    ToolDeclaration,
)
from services.orchestrator.models.facade import Models
from services.orchestrator.store.records import Message
from services.orchestrator.turns.fitting import Fitting
from services.orchestrator.turns.prompt_changes import PromptChanges
from services.orchestrator.turns.streamed_calls import StreamedCalls
from services.orchestrator.turns.turn import Turn
from services.orchestrator.turns.writes import TurnWrites

MessageView = Callable[[Message], conversations_pb2.Message]


class Asking:
    """Makes model calls for turns and shows what comes.

    Args:
        models: The providers behind their routes.
        fitting: Makes prompts fit into windows.
        changes: Knows what the call before was told.
        writes: For steps of routes that were given up.
        catalogue: Sentences for what failed.
        view: A stored message as people and programs see it.
        clock: The present moment, for the prompt's date line.
    """

    def __init__(
        self,
        *,
        models: Models,
        fitting: Fitting,
        changes: PromptChanges,
        writes: TurnWrites,
        catalogue: Catalogue,
        view: MessageView,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._models = models
        self._fitting = fitting
        self._changes = changes
        self._writes = writes
        self._catalogue = catalogue
        self._view = view
        self._clock = clock

    async def ask(
        self, turn: Turn, toolbox: Toolbox, whole: Callable[[str, str], None] | None = None
    ) -> Reply | None:
        """Ask the turn's routes for the next reply.

        Args:
            turn: The turn.
            toolbox: What the model is told of.
            whole: Told name and arguments of each call as soon as they are whole (PIP-101).

        Returns:
            None when the prompt was made smaller instead: the turn's limits are to be looked at again
            before the call.

        Raises:
            ModelError: No whole reply came; nothing or part of it was shown.
            NoRoom: The prompt cannot be made to fit.
        """
        if turn.texts is None:
            turn.texts = await read_texts(turn.agent)
        prompt = assemble(
            turn.agent,
            toolbox.specs,
            turn.log,
            turn.locale,
            self._clock(),
            texts=turn.texts,
            compaction=turn.compaction,
        )
        if await self._fitting.made_smaller(turn, prompt):
            return None
        try:
            reply = await self._stream(turn, self._request(turn, toolbox, prompt), whole)
        except TooLargeForModel as refused:
            await self._refused(turn, refused)
            await self._fitting.after_refusal(turn, prompt, refused)
            return None
        self._close_step(turn, reply, await self._changes.told(turn, prompt.system_prompt))
        return reply

    async def _stream(
        self, turn: Turn, request: ModelRequest, whole: Callable[[str, str], None] | None
    ) -> Reply:
        reply: Reply | None = None
        calls = StreamedCalls()
        async with aclosing(self._models.stream(request)) as events:
            async for event in events:
                match event:
                    case TextDelta(text=text):
                        turn.shown += text
                        self._publish(turn, text_delta=events_pb2.TextDelta(text=text))
                    case Thinking():
                        self._publish(turn, thinking=events_pb2.Thinking())
                    case CallDelta(index=index, name=name, chunk=chunk, attempt=attempt):
                        if whole is not None and (call := calls.feed(event)):
                            whole(*call)
                        delta = events_pb2.ToolCallDelta(index=index, name=name, chunk=chunk, attempt=attempt)
                        self._publish(turn, tool_call_delta=delta)
                    case Started(route=route):
                        turn.model_step = turn.recorder.open("model", route=str(route))
                        turn.served_by = None
                    case Served(route=route):
                        turn.served_by = route
                    case RouteGivenUp():
                        await self._given_up(turn, event)
                    case Completed(reply=completed):
                        reply = completed
                    case _:
                        assert_never(event)
        assert reply is not None, "a stream of model events ends with Completed or raises"
        return reply

    def said(self, turn: Turn, message: Message) -> None:
        """Show the stored reply as a whole."""
        whole = events_pb2.AssistantMessage(message=self._view(message))
        self._publish(turn, assistant_message=whole)

    @staticmethod
    def _request(turn: Turn, toolbox: Toolbox, prompt: Prompt) -> ModelRequest:
        return ModelRequest(
            routes=turn.routes,
            system=prompt.system,
            messages=prompt.messages,
            tools=[ToolDeclaration(spec.name, spec.description, spec.parameters) for spec in toolbox.specs],
            reasoning=turn.agent.reasoning,
            agent_id=turn.agent.id,
            stable_system_chars=prompt.stable_chars,
        )

    async def _given_up(self, turn: Turn, event: RouteGivenUp) -> None:
        error = self._catalogue.text(turn.locale, event.error.key, **event.error.values)
        following = str(event.next_route) if event.next_route else ""
        step = turn.model_step
        if step is None:
            step = turn.recorder.open("fallback", route=str(event.route))
        # The waiting model step becomes the record of the attempt; the next route opens its own.
        step.kind = "fallback"
        turn.recorder.close(step, ms=event.ms, error=error, next_route=following)
        turn.model_step = None
        await self._writes.step(turn, step)
        fallback = events_pb2.RouteFallback(route=str(event.route), error=error, next_route=following)
        self._publish(turn, route_fallback=fallback)

    async def _refused(self, turn: Turn, refused: TooLargeForModel) -> None:
        """Keep what the provider said of the prompt's size with the step that asked it."""
        step = turn.model_step or turn.recorder.open("model", route=str(refused.route))
        turn.recorder.close(step, error=refused.sentence(self._catalogue, turn.locale))
        await self._writes.step(turn, step)
        turn.model_step, turn.served_by = None, None

    @staticmethod
    def _close_step(turn: Turn, reply: Reply, moved: Sequence[str]) -> None:
        if turn.model_step is None:
            turn.model_step = turn.recorder.open("model", route=str(reply.route))
        usage = reply.usage
        turn.model_step.moved.extend(moved)
        turn.recorder.close(
            turn.model_step,
            ms=reply.ms,
            route=str(reply.route),
            first_token_ms=reply.first_token_ms,
            cost_usd=reply.cost_usd,
            cost_estimated=reply.cost_estimated or None,
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            cached_tokens=usage.cached_tokens,
            reasoning_tokens=usage.reasoning_tokens,
        )

    @staticmethod
    def _publish(turn: Turn, **event: Any) -> None:
        turn.stream.publish(events_pb2.TurnEvent(**event))
