"""Random programs of the language do here what they do in CPython."""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from crew.v1 import script_sandbox_pb2 as pb
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pydantic_monty import Monty, MontyRuntimeError

from services.script_sandbox.bridge.prelude_values import prelude_values
from services.script_sandbox.dialect import check_script
from services.script_sandbox.engine.workers import PRELUDE
from services.script_sandbox.limits import Limits
from services.script_sandbox.lowering import lower
from tests.fixtures.script_programs import ProgramWriter
from tests.fixtures.script_sandbox import Caller

ROOT = Path(__file__).parents[3]
PROGRAMS = 5_000
THROUGH_THE_SERVICE = 20
# The worker's whole address space: whatever a program turns out to be, it cannot take the machine's.
_WORKER_BYTES = 1024**3
_FLOAT = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?")
_NEGATIVE_ZERO = re.compile(r"-0\.0(?!\d)")


class Reference:
    """CPython in a process with little memory."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fixtures.script_reference"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, program: str) -> tuple[str, str | None]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(program) + "\n")
        self._process.stdin.flush()
        printed, error = json.loads(self._process.stdout.readline())
        return printed, error

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


class Engine:
    """The check, the lowering, the prelude and the engine, without a process a program."""

    def __init__(self, session: Any) -> None:
        self._session = session
        session.feed_run(PRELUDE)
        given = prelude_values(pb.ScriptStart(), Limits(), "en")
        session.feed_run("__begin(__limits_given, __texts_given, __llm_given, __store_given)", inputs=given)

    def run(self, program: str) -> tuple[str, str | None]:
        printed: list[str] = []
        lowered = lower(check_script(program, max_chars=100_000))
        self._session.feed_run("__steps = 0\n__depth = 0")
        try:
            self._session.feed_run(lowered.text, print_callback=lambda _, text: printed.append(text))
        except MontyRuntimeError as error:
            kind = error.display(format="type-msg").partition(":")[0].rpartition(".")[2]
            return "".join(printed), kind
        return "".join(printed), None


@pytest.fixture(scope="module")
def reference() -> Iterator[Reference]:
    running = Reference()
    yield running
    running.close()


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with (
        Monty(max_processes=1) as pool,
        pool.checkout(
            limits={
                "max_memory": 64 * 1024**2,
                "max_turn_duration_secs": 10,
                "max_recursion_depth": 320,
                "max_suspensions": 1000,
            },
            assert_message_annotations=False,
        ) as session,
    ):
        assert session.worker_pid is not None
        resource.prlimit(session.worker_pid, resource.RLIMIT_AS, (_WORKER_BYTES, _WORKER_BYTES))
        yield Engine(session)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.spec("SCR-179", "SCR-184", "SCR-185", "SCR-186", "SCR-188", "SCR-192", "SCR-193", "SCR-201")
@pytest.mark.spec("SCR-202", "SCR-205", "SCR-206", "SCR-207", "SCR-219")
@settings(
    max_examples=PROGRAMS,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(seed=st.integers(0, 2**48))
def test_a_random_program_does_what_it_does_in_cpython(
    seed: int, reference: Reference, engine: Engine
) -> None:
    program = ProgramWriter(Random(seed)).program()
    expected, told = reference.run(program), engine.run(program)
    assert _same_digits(told[0]) == _same_digits(expected[0]), program
    assert told[1] == expected[1], program


async def test_programs_do_the_same_through_the_whole_service(caller: Caller, reference: Reference) -> None:
    for seed in range(THROUGH_THE_SERVICE):
        program = ProgramWriter(Random(seed)).program()
        expected, error = reference.run(program)
        told = await caller.run(program)
        assert told.end is not None
        if error is None:
            assert _same_digits(told.finished.printed) == _same_digits(expected), program
        else:
            assert _same_digits(told.failed.printed) == _same_digits(expected), program
            assert told.failed.cause == error, program


def _same_digits(printed: str) -> str:
    """Of two shortest texts of one float either may be written; they read back equal.

    A zero that came out of rounding may have lost its sign.
    """
    told = _FLOAT.sub(lambda found: repr(float(found[0])), printed)
    return _NEGATIVE_ZERO.sub("0.0", told)
