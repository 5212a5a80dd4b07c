"""Whether a prompt fits into the windows of a turn's routes, and what is done when not (FLD-003, FLD-004)."""

from __future__ import annotations

from collections.abc import Sequence

from services.common.wording import Catalogue
from services.orchestrator.context.history import chat_messages
from services.orchestrator.context.older_turns import older_turns
from services.orchestrator.context.prompt import Prompt, estimated_tokens
from services.orchestrator.context.sizes import MOST_FIXED, PromptSizes, history_chars, tokens_of
from services.orchestrator.models.contract import Route, TooLargeForModel
from services.orchestrator.models.facade import Models
from services.orchestrator.models.windows import Window
from services.orchestrator.turns.compacting import Compacting
from services.orchestrator.turns.turn import Turn

# Above this part of the window older turns are summarised before the call.
FULL = 0.8
# A refused prompt is sent again when it has become so much smaller.
LEAST_SHRINKING = 0.2


class NoRoom(Exception):
    """The turn cannot go on within the windows of its routes.

    Args:
        sentence: For the person: the sizes, what is kept, what to do.
        asked: Whether a model was asked, and refused.
        abandoned: Calls that were left at unknown cost.
    """

    def __init__(self, sentence: str, *, asked: bool, abandoned: Sequence[Route] = ()) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.asked = asked
        self.abandoned = tuple(abandoned)


class Fitting:
    """Makes prompts fit.

    Args:
        models: Knows the windows.
        compacting: Makes prompts smaller.
        catalogue: Sentences.
    """

    def __init__(self, *, models: Models, compacting: Compacting, catalogue: Catalogue) -> None:
        self._models = models
        self._compacting = compacting
        self._catalogue = catalogue

    async def made_smaller(self, turn: Turn, prompt: Prompt) -> bool:
        """Summarise older turns when the prompt fills its window; whether that changed it.

        Raises:
            NoRoom: What every prompt holds is too large for the smallest window of the turn's routes.
        """
        windows = await self._models.windows(turn.routes)
        asked = self._models.next_asked(turn.routes)
        if asked is None or asked not in windows:
            return False
        sizes = prompt.sizes
        smallest = min(windows, key=lambda route: windows[route].tokens)
        if tokens_of(sizes.fixed) > MOST_FIXED * windows[smallest].tokens:
            raise NoRoom(self._sentence(turn, "fixed", sizes, smallest, windows[smallest]), asked=False)
        window = windows[asked].tokens
        if turn.cannot_compact or self._estimate(turn, prompt) <= FULL * window:
            return False
        older = older_turns(turn.log, turn.compaction)
        if older is None:
            return False
        done = await self._compacting.compact(turn, older, "full", window)
        turn.cannot_compact = not done
        return done

    async def after_refusal(self, turn: Turn, prompt: Prompt, refused: TooLargeForModel) -> None:
        """Make a refused prompt smaller, so that the call can be repeated once.

        One summary takes all the older turns a turn has, so a turn repeats one call at most.

        Raises:
            NoRoom: It cannot be made small enough.
        """
        window = self._models.window(refused.route)
        sizes, total = prompt.sizes, self._estimate(turn, prompt)
        abandoned = refused.abandoned
        older = older_turns(turn.log, turn.compaction)
        if older is not None and not turn.cannot_compact:
            done = await self._compacting.compact(turn, older, "refused", window.tokens, abandoned)
            turn.cannot_compact = not done
            # Recorded with the summary.
            abandoned = ()
            history = history_chars(chat_messages(turn.log, turn.locale, turn.compaction))
            if done and sizes.fixed + history <= (1 - LEAST_SHRINKING) * sizes.total:
                return
        sentence = self._sentence(turn, "full", sizes, refused.route, window, total=total)
        raise NoRoom(sentence, asked=True, abandoned=abandoned)

    @staticmethod
    def _estimate(turn: Turn, prompt: Prompt) -> int:
        return estimated_tokens(prompt, turn.log, turn.locale, turn.compaction)

    def _sentence(
        self,
        turn: Turn,
        key: str,
        sizes: PromptSizes,
        route: Route,
        window: Window,
        *,
        total: int | None = None,
    ) -> str:
        return self._catalogue.text(
            turn.locale,
            f"turn.no_room_in_window.{key}",
            route=route,
            window=f"{window.tokens:,}",
            percent=round(MOST_FIXED * 100),
            fixed=f"{tokens_of(sizes.fixed):,}",
            total=f"{tokens_of(sizes.total) if total is None else total:,}",
            instructions=f"{tokens_of(sizes.instructions):,}",
            tools=f"{tokens_of(sizes.tools):,}",
            memory=f"{tokens_of(sizes.memory):,}",
            history=f"{tokens_of(sizes.history):,}",
        )
