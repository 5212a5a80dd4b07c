"""Plays a plan as a turn: messages, events, run steps and requests, in the order the real one has."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from .plans import Ask, Call, Escalate, Fail, Fallback, Halt, Hold, Plan, Question, Text
from .shapes import shape
from .state import State, Talk, Turn, stamp

_ROUTE = "openrouter:anthropic/claude-sonnet-4"


class Performer:
    """One turn of one conversation."""

    def __init__(self, state: State, talk: Talk, plan: Plan) -> None:
        self.state = state
        self.talk = talk
        self.plan = plan
        self.run = shape(
            "Run",
            id=f"run-{state.number()}",
            agent_id=talk.head["agent_id"],
            source="chat",
            conversation_id=talk.head["id"],
            status="running",
            after_seq=len(talk.messages),
            started_at=stamp(),
        )
        self.words = ""
        self.calls: list[dict[str, Any]] = []
        self.model_step: dict[str, Any] | None = None

    def start(self) -> Turn:
        """Begin in the background."""
        turn = Turn(self.run["id"])
        self.talk.turn = turn
        self.state.runs[self.run["id"]] = self.run
        self.state.tell_run(self.run)
        turn.task = self.talk.task = asyncio.create_task(self._play())
        return turn

    async def _play(self) -> None:
        state = self.state
        try:
            await self._open_model()
            for at, step in enumerate(self.plan.steps):
                match step:
                    case Text():
                        await self._text(step)
                    case Hold():
                        await state.wait_for(step.name)
                    case Call():
                        await self._call(step, last=not self._more_calls(at))
                    case Ask():
                        await self._ask(step)
                    case Question():
                        await self._question(step)
                    case Fallback():
                        self._add_step(
                            "fallback", route=step.route, error=step.error, next_route=step.next_route
                        )
                        await state.tell_turn(
                            self.talk,
                            "route_fallback",
                            route=step.route,
                            error=step.error,
                            next_route=step.next_route,
                        )
                    case Escalate():
                        reason = "error" if step.error else "loop"
                        self._add_step("escalation", route=step.route, error=step.error or None)
                        await state.tell_turn(
                            self.talk, "escalated", reason=reason, route=step.route, error=step.error
                        )
                    case Fail():
                        await self._end("error", step.message, "error", message=step.message)
                        return
                    case Halt():
                        await self._end("halted", step.reason, "halted", reason=step.reason)
                        return
            reply = self.words
            await self._close_model()
            await self._end("done", reply[:120], "done", text=reply)
        except asyncio.CancelledError:
            self.run.update(status="error", summary="interrupted", finished_at=stamp())
            state.tell_run(self.run)
            raise

    def _more_calls(self, at: int) -> bool:
        following = self.plan.steps[at + 1 : at + 2]
        return bool(following) and isinstance(following[0], Call)

    def _add_step(self, kind: str, **values: Any) -> dict[str, Any]:
        step = shape("RunStep", kind=kind, index=len(self.run["steps"]), started_at=stamp(), **values)
        if kind != "model" and kind != "tool" and kind != "approval":
            step["ms"] = 0
        self.run["steps"].append(step)
        self.state.tell_step(self.run, step)
        return step

    async def _open_model(self) -> None:
        self.model_step = self._add_step("model", route=_ROUTE)
        await self.state.tell_turn(self.talk, "thinking")

    async def _text(self, step: Text) -> None:
        if self.model_step is None:
            await self._open_model()
        for start in range(0, len(step.words), step.piece):
            piece = step.words[start : start + step.piece]
            self.words += piece
            await self.state.tell_turn(self.talk, "text_delta", text=piece)
            if step.pace:
                await asyncio.sleep(step.pace)

    async def _close_model(self) -> None:
        """The model's reply is whole: store it with its calls."""
        cost = self.plan.cost_usd
        prompt, cached, out = 8450, 7168, max(12, len(self.words) // 4)
        if self.model_step is not None:
            self.model_step.update(
                ms=1840,
                first_token_ms=412,
                prompt_tokens=prompt,
                cached_tokens=cached,
                completion_tokens=out,
                cost_usd=cost,
            )
            self.state.tell_step(self.run, self.model_step)
            self.model_step = None
        message = self.state.add_message(
            self.talk,
            "assistant",
            self.words,
            tool_calls=self.calls,
            provider="openrouter",
            model="claude-sonnet-4",
            cost_usd=cost,
            prompt_tokens=prompt,
            completion_tokens=out,
            cached_tokens=cached,
        )
        self.words = ""
        self.calls = []
        self.run["cost_usd"] += cost or 0
        self.talk.head["spent_usd"] += cost or 0
        if cost is None:
            self.run["unknown_cost_calls"] += 1
            self.talk.head["unknown_cost_calls"] += 1
        await self.state.tell_turn(self.talk, "assistant_message", message=message)

    async def _propose(self, tool: str, arguments: dict[str, Any]) -> str:
        call_id = f"call-{self.state.number()}"
        self.calls.append(shape("MessageToolCall", id=call_id, name=tool, arguments=arguments))
        await self._close_model()
        return call_id

    async def _call(self, step: Call, last: bool) -> None:
        call_id = await self._propose(step.tool, step.arguments)
        await self._result(call_id, step)
        if last and self.plan.steps[-1] is not step:
            await self._open_model()

    async def _result(self, call_id: str, step: Call) -> None:
        state, talk = self.state, self.talk
        run_step = self._add_step("tool", name=step.tool, arguments=step.arguments, tool_call_id=call_id)
        await state.tell_turn(talk, "tool_call", id=call_id, name=step.tool, arguments=step.arguments)
        if step.progress:
            await state.tell_turn(talk, "tool_progress", id=call_id, text=step.progress)
        if step.hold:
            await state.wait_for(step.hold)
        run_step.update(ms=step.ms, ok=step.ok, output=step.output[:160], verdict=step.verdict)
        state.tell_step(self.run, run_step)
        state.add_message(
            talk, "tool", step.output, tool_call_id=call_id, name=step.tool, is_error=not step.ok
        )
        await state.tell_turn(
            talk,
            "tool_result",
            id=call_id,
            name=step.tool,
            ok=step.ok,
            output=step.output,
            ms=step.ms,
            calls=[],
        )

    async def _ask(self, step: Ask) -> None:
        call_id = await self._propose(step.tool, step.arguments)
        approved, _ = await self._wait_for_person(
            call_id,
            step.seconds,
            kind=step.kind,
            tool=step.tool,
            arguments=step.arguments,
            summary=step.summary,
            reason=step.reason,
            preview=step.preview,
            review=step.review
            and shape("Review", verdict=step.review[0], reason=step.review[1], route="small:model"),
            may_always=step.may_always,
            always_allows=step.tool if step.may_always else "",
        )
        verdict = "approved" if approved else "denied"
        output = step.output if approved else "The person denied this call. It did not run."
        await self._result(call_id, Call(step.tool, step.arguments, output, ok=approved, verdict=verdict))
        await self._open_model()

    async def _question(self, step: Question) -> None:
        arguments = {"question": step.text, "options": list(step.options)}
        call_id = await self._propose("ask_user", arguments)
        _, answer = await self._wait_for_person(
            call_id,
            step.seconds,
            kind="question",
            tool="ask_user",
            arguments=arguments,
            summary=step.text,
            options=list(step.options),
        )
        await self._result(call_id, Call("ask_user", arguments, answer or "", verdict="approved"))
        await self._open_model()

    async def _wait_for_person(self, call_id: str, seconds: float, **values: Any) -> tuple[bool, str | None]:
        state, talk = self.state, self.talk
        now = datetime.now(UTC)
        talk.approval = shape(
            "Approval",
            id=f"appr-{state.number()}",
            conversation_id=talk.head["id"],
            agent_id=talk.head["agent_id"],
            tool_call_id=call_id,
            status="pending",
            delivery="waiting",
            created_at=stamp(now),
            expires_at=stamp(now + timedelta(seconds=seconds)),
            run_id=self.run["id"],
            **values,
        )
        talk.decided = asyncio.get_running_loop().create_future()
        waits = self._add_step(
            "approval", name=values["tool"], arguments=values["arguments"], verdict="asked"
        )
        self.run["status"] = "awaiting_approval"
        await state.tell_turn(talk, "approval_required", approval=talk.approval)
        await state.end_turn(talk)
        state.tell_run(self.run)
        approve, answer = await talk.decided
        # The deciding request opened the next stream of this same turn before it told us.
        waits.update(ms=4200, ok=approve)
        self.run["status"] = "running"
        state.tell_step(self.run, waits)
        state.tell_run(self.run)
        return approve, answer

    async def _end(self, status: str, summary: str, kind: str, **values: Any) -> None:
        state, talk = self.state, self.talk
        if kind != "error":
            values.update(
                steps=len(self.run["steps"]),
                spent_usd=talk.head["spent_usd"],
                unknown_cost_calls=talk.head["unknown_cost_calls"],
            )
        if self.model_step is not None:
            failed = summary if status == "error" else None
            self.model_step.update(ms=900, error=failed)
            state.tell_step(self.run, self.model_step)
        self.run.update(status=status, summary=summary, finished_at=stamp())
        await state.tell_turn(talk, kind, **values)
        await state.end_turn(talk)
        state.tell_run(self.run)
