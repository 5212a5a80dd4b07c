"""What a script asks, what it is answered, and what is caught before anything is asked."""

from __future__ import annotations

import json

import pytest
from crew.v1 import script_sandbox_pb2 as pb

from tests.fixtures.script_sandbox import Caller, Told, failing, plain_answer, refusing


def asked(told: Told) -> list[str]:
    return [request.WhichOneof("message") or "" for request in told.requests]


async def caught(caller: Caller, expression: str, **kwargs: object) -> tuple[str, Told]:
    """The text of the ToolError that an expression raises."""
    script = (
        f"try:\n    {expression}\n    print('no error')\nexcept ToolError as error:\n    print(error, end='')"
    )
    told = await caller.run(script, **kwargs)  # type: ignore[arg-type]
    return told.printed, told


@pytest.mark.spec("SCR-042", "SCR-044", "SCR-261", "SCR-264")
async def test_the_forms_of_a_call(caller: Caller) -> None:
    told = await caller.run(
        "tools.f(b=1, a=['é', None])\ntools.f({'x y': 2})\ntools.f(**{'c': True})\n\ntools.f()\nprint(tools.f(z=1.5))"
    )
    calls = [request.tool_call for request in told.requests]
    assert [call.args_json for call in calls] == [
        '{"b":1,"a":["é",null]}',
        '{"x y":2}',
        '{"c":true}',
        "{}",
        '{"z":1.5}',
    ]
    assert [call.seq for call in calls] == [1, 2, 3, 4, 5]
    assert [call.line for call in calls] == [1, 2, 3, 5, 6]
    assert told.printed == 'f {"z":1.5}\n'


@pytest.mark.spec("SCR-043", "SCR-054")
@pytest.mark.parametrize(
    "call",
    [
        *(
            "tools.f(1)",
            "tools.f({}, {})",
            "tools.f({}, a=1)",
            "tools.f({1: 2})",
            "tools.f('a')",
            "tools.f([1])",
        ),
        *("tools.f(a={1})", "tools.f(a=print)", "tools.f(a=1e400)", "tools.f(a=float('nan'))"),
        *(
            "tools.f(a={1: 2})",
            "tools.f(a=[{None: 1}])",
            "tools.f(a=ValueError('x'))",
            "tools.f(a=lambda: 1)",
        ),
    ],
)
async def test_another_form_runs_nothing_and_counts_nowhere(call: str, caller: Caller) -> None:
    text, told = await caught(caller, call)
    assert text
    assert text != "no error\n"
    assert told.requests == []
    script = (
        f"for i in range(30):\n    try:\n        {call}\n    except ToolError: pass\n" + "tools.g()\n" * 25
    )
    assert len((await caller.run(script)).requests) == 25


@pytest.mark.spec("SCR-053", "SCR-351")
async def test_the_size_of_a_calls_arguments(caller: Caller) -> None:
    fits = 100_000 - len('{"a":""}')
    assert (
        len((await caller.run(f"tools.f(a='x' * {fits})\nNone")).requests[0].tool_call.args_json) == 100_000
    )
    told = await caller.run(f"try:\n    tools.f(a='x' * {fits + 1})\nexcept Exception:\n    print('caught')")
    assert (told.failed.cause, told.failed.line, told.requests) == ("arguments", 2, [])


@pytest.mark.spec("SCR-045")
async def test_a_tools_error_is_raised_with_its_text(caller: Caller) -> None:
    text, _ = await caught(caller, "tools.f()", answer=lambda request: failing(request, "no such file: é"))
    assert text == "no such file: é"
    failed = (await caller.run("print('a')\ntools.f()", lambda request: failing(request, "why"))).failed
    assert (failed.cause, failed.line, failed.message) == ("ToolError", 2, "Error at line 2: ToolError: why")
    assert failed.printed == "a\n"


@pytest.mark.spec("SCR-051", "SCR-052", "SCR-233", "SCR-262")
@pytest.mark.parametrize(
    "call", ["tools.f()", "tools.batch([{'tool': 'f'}])", "tools.names()", "llm.summarise('x')", "load('k')"]
)
async def test_nothing_catches_a_refusal(call: str, caller: Caller) -> None:
    script = f"print('a')\ntry:\n    {call}\nexcept Exception:\n    print('b')\nfinally:\n    print('c')"
    told = await caller.run(script, lambda request: refusing(request, "Call it directly."))
    assert told.failed.kind == pb.SCRIPT_FAILURE_KIND_REFUSED
    assert (told.failed.line, told.failed.printed) == (3, "a\n")
    assert told.failed.message == "Stopped at line 3: Call it directly."
    vi = await caller.run(script, lambda request: refusing(request, "Gọi trực tiếp."), locale="vi")
    assert vi.failed.message == "Dừng ở dòng 3: Gọi trực tiếp."


@pytest.mark.spec("SCR-056", "SCR-351")
async def test_twenty_five_calls_and_no_more(caller: Caller) -> None:
    assert len((await caller.run("for i in range(25): tools.f()")).requests) == 25
    told = await caller.run(
        "print('a')\nfor i in range(26):\n    try:\n        tools.f()\n    except Exception: print('no')"
    )
    assert (told.failed.cause, told.failed.line, told.failed.printed) == ("calls", 4, "a\n")
    assert "25 calls" in told.failed.message
    assert len(told.requests) == 25


@pytest.mark.spec("SCR-058", "SCR-059", "SCR-060", "SCR-061", "SCR-064", "SCR-066", "SCR-067")
async def test_looking_up(caller: Caller) -> None:
    def answer(request: pb.FromSandbox) -> pb.ToSandbox:
        values = {
            pb.LOOKUP_KIND_NAMES: ["b", "a"],
            pb.LOOKUP_KIND_SEARCH: [{"name": "a", "description": "é"}],
        }
        value = json.dumps(values.get(request.lookup.kind, "a(x: string)"))
        return pb.ToSandbox(lookup_result=pb.LookupResult(seq=request.lookup.seq, ok=True, value_json=value))

    told = await caller.run(
        "print(tools.names(), tools.search('a b'), tools.search('c', limit=10), tools.describe('a'))", answer
    )
    assert (
        told.printed
        == "['b', 'a'] [{'name': 'a', 'description': 'é'}] [{'name': 'a', 'description': 'é'}] a(x: string)\n"
    )
    assert [(one.lookup.text, one.lookup.limit) for one in told.requests] == [
        ("", 0),
        ("a b", 5),
        ("c", 10),
        ("a", 0),
    ]
    for wrong in (
        *(
            "tools.names(1)",
            "tools.search()",
            "tools.search(1)",
            "tools.search('a', limit=0)",
            "tools.describe(1)",
        ),
        *("tools.search('a', limit=11)", "tools.search('a', limit=True)", "tools.search('a', 'b')"),
        *(
            "tools.search('x' * 1001)",
            "tools.describe('x' * 1001)",
            "tools.describe()",
            "tools.search('a', n=1)",
        ),
    ):
        text, wrong_told = await caught(caller, wrong)
        assert "tools." in text, wrong
        assert wrong_told.requests == []
    assert len((await caller.run("tools.search('x' * 1000)\nNone")).requests) == 1
    many = await caller.run(
        "for i in range(40): tools.names()\ntry:\n    tools.names()\nexcept ToolError: print('41')\n"
        + "tools.f()\n" * 25
    )
    assert many.printed.startswith("41\n")
    assert len(many.requests) == 65


@pytest.mark.spec("SCR-068", "SCR-069", "SCR-070", "SCR-078")
async def test_a_batch(caller: Caller) -> None:
    def answer(request: pb.FromSandbox) -> pb.ToSandbox:
        items = [pb.BatchItemResult(ok=True, text="é"), pb.BatchItemResult(ok=False, text="Did you mean a?")]
        return pb.ToSandbox(batch_result=pb.BatchResult(seq=request.batch_call.seq, items=items))

    for form in ("tools.batch(%s)", "tools.batch(calls=%s)"):
        items = '[{"tool": "a", "args": {"p": 1}}, {"tool": "nope"}]'
        told = await caller.run(f"print({form % items})", answer)
        assert told.printed == "[{'ok': True, 'output': 'é'}, {'ok': False, 'error': 'Did you mean a?'}]\n"
        (request,) = told.requests
        assert [(item.name, item.args_json) for item in request.batch_call.items] == [
            ("a", '{"p":1}'),
            ("nope", "{}"),
        ]


@pytest.mark.spec("SCR-073", "SCR-351")
@pytest.mark.parametrize(
    ("batch", "names"),
    [
        *(
            ("[]", ""),
            ('[{"tool": "a"}] * 11', ""),
            ("1", ""),
            ("[1], [2]", ""),
            ("", ""),
            ("calls=[], x=1", ""),
        ),
        *(('[{"tool": "a", "x": 1}]', "0"), ('[{"tool": "a"}, {"tool": 1}]', "1"), ('[{"args": {}}]', "0")),
        *(
            ('[{"tool": "a"}, 5]', "1"),
            ('[{"tool": "a", "args": [1]}]', "0"),
            ('[{"tool": "a", "args": {1: 2}}]', "0"),
        ),
        *(
            ('[{"tool": "a", "args": {"x": {1}}}]', "0"),
            ('[{"tool": "a", "args": {"x": "y" * 100000}}]', "0"),
        ),
    ],
)
async def test_a_batch_that_is_none(batch: str, names: str, caller: Caller) -> None:
    text, told = await caught(caller, f"tools.batch({batch})")
    assert "batch" in text
    assert names in text
    assert told.requests == []


@pytest.mark.spec("SCR-074", "SCR-075")
async def test_a_batch_of_more_than_is_left(caller: Caller) -> None:
    text, told = await caught(caller, "[tools.f() for i in range(17)]\n    tools.batch([{'tool': 'a'}] * 9)")
    assert text.startswith("only 8 of 25 calls are left")
    assert len(told.requests) == 17
    assert (
        await caller.run("[tools.f() for i in range(17)]\ntools.batch([{'tool': 'a'}] * 8)\nNone")
    ).finished
    stopped = await caller.run(
        "[tools.f() for i in range(25)]\ntry:\n    tools.batch([{'tool': 'a'}])\nexcept Exception: print('no')"
    )
    assert (stopped.failed.cause, stopped.failed.printed) == ("calls", "")


@pytest.mark.spec("SCR-139", "SCR-144", "SCR-261")
async def test_asking_a_model(caller: Caller) -> None:
    told = await caller.run(
        "print(llm.classify('t', ['a', 'B']), llm.classify(labels=['x', 'y'], text='u'), llm.summarise('v'), llm.summarise('w', 9))"
    )
    assert told.printed == "a x summary summary\n"
    questions = [request.ask_model for request in told.requests]
    assert [(one.text, list(one.labels), one.max_chars) for one in questions] == [
        *(("t", ["a", "B"], 0), ("u", ["x", "y"], 0), ("v", [], 500), ("w", [], 9)),
    ]


@pytest.mark.spec("SCR-140", "SCR-141", "SCR-142", "SCR-143", "SCR-351")
async def test_a_question_with_a_wrong_parameter(caller: Caller) -> None:
    wrong = {
        "llm.classify(text, labels): ": (
            *(
                "llm.classify('', ['a', 'b'])",
                "llm.classify('x' * 20001, ['a', 'b'])",
                "llm.classify(1, ['a', 'b'])",
            ),
            *("llm.classify('t', ['a'])", "llm.classify('t', ['a', 'A '])", "llm.classify('t', ['a', ''])"),
            *(
                "llm.classify('t', 'ab')",
                "llm.classify('t', ['a', 1])",
                "llm.classify('t', ['a', 'b' * 101])",
            ),
            *(
                "llm.classify('t', [str(i) for i in range(21)])",
                "llm.classify('t')",
                "llm.classify('t', ['a', 'b'], 1)",
            ),
            *("llm.classify('t', ['a', 'b'], text='u')", "llm.classify('t', ['a', 'b'], n=1)"),
        ),
        "llm.summarise(text, max_chars=500): ": (
            *(
                "llm.summarise('x' * 20001)",
                "llm.summarise('')",
                "llm.summarise('t', 0)",
                "llm.summarise('t', 4001)",
            ),
            *(
                "llm.summarise('t', True)",
                "llm.summarise('t', '5')",
                "llm.summarise('t', 1.0)",
                "llm.summarise()",
            ),
        ),
    }
    for form, calls in wrong.items():
        for call in calls:
            text, told = await caught(caller, call)
            assert text.startswith(form), call
            assert told.requests == [], call
    right = (
        "llm.summarise('x' * 20000, 4000)\nllm.summarise('x', 1)\n"
        "llm.classify('t', [str(i) for i in range(20)])\nllm.classify('t', ['a', 'b' * 100])\nNone"
    )
    assert len((await caller.run(right)).requests) == 4


@pytest.mark.spec("SCR-152", "SCR-153", "SCR-351")
async def test_ten_questions_which_are_calls_too(caller: Caller) -> None:
    told = await caller.run(
        "for i in range(11):\n    try:\n        llm.summarise('t')\n    except Exception: print('no')"
    )
    assert (told.failed.cause, len(told.requests)) == ("questions", 10)
    assert "asked the model more than 10 times" in told.failed.message
    mixed = await caller.run("for i in range(10): llm.summarise('t')\nfor i in range(16): tools.f()")
    assert (mixed.failed.cause, len(mixed.requests)) == ("calls", 25)


@pytest.mark.spec("SCR-171")
async def test_a_script_that_may_ask_no_model(caller: Caller) -> None:
    text, told = await caught(caller, "llm.summarise('t')", llm=False)
    assert (text, told.requests) == ("a model cannot be asked here.", [])
    script = "for i in range(11):\n    try:\n        llm.summarise('t')\n    except ToolError: pass"
    assert (await caller.run(script, llm=False)).failed.cause == "questions"
    used = "for i in range(5):\n    try: llm.summarise('t')\n    except ToolError: pass\nfor i in range(21): tools.f()"
    assert (await caller.run(used, llm=False)).failed.cause == "calls"


@pytest.mark.spec("SCR-148", "SCR-264")
async def test_an_answer_that_is_no_label_never_reaches_the_script(caller: Caller) -> None:
    def answer(request: pb.FromSandbox) -> pb.ToSandbox:
        return pb.ToSandbox(model_result=pb.ModelResult(seq=request.ask_model.seq, ok=True, text="c"))

    told = await caller.run("print(llm.classify('t', ['a', 'b']))", answer)
    assert (told.failed.kind, told.failed.cause) == (pb.SCRIPT_FAILURE_KIND_KILLED, "protocol")


class TestStore:
    @staticmethod
    def holding(entries: dict[str, str], used: int | None = None) -> object:
        def answer(request: pb.FromSandbox) -> pb.ToSandbox:
            if not request.HasField("open_store"):
                return plain_answer(request)
            kept = [pb.StoreEntry(key=key, json=value) for key, value in entries.items()]
            chars = sum(len(key) + len(value) for key, value in entries.items()) if used is None else used
            return pb.ToSandbox(
                store_snapshot=pb.StoreSnapshot(seq=request.open_store.seq, entries=kept, used_chars=chars)
            )

        return answer

    @pytest.mark.spec("SCR-299", "SCR-300", "SCR-303", "SCR-304", "SCR-305", "SCR-306", "SCR-332")
    async def test_keeping_and_forgetting(self, caller: Caller) -> None:
        script = (
            "x = [1, (2, None)]\nstore('a', x)\nx.append(3)\nprint(load('a'), load('old'), load('never'))\n"
            "y = load('a')\ny.append(4)\nprint(load('a'))\nstore('old', None)\nprint(load('old'))\n"
            "store('never', None)\nstore('é', {'b': 'é'})\nstore('a', True)\n"
        )
        told = await caller.run(script, self.holding({"old": '{"k":1.10}'}))  # type: ignore[arg-type]
        assert told.printed == "[1, [2, None]] {'k': 1.1} None\n[1, [2, None]]\nNone\n"
        writes = {write.key: write.json if write.HasField("json") else None for write in told.finished.writes}
        assert writes == {"a": "true", "old": None, "never": None, "é": '{"b":"é"}'}
        assert [request.WhichOneof("message") for request in told.requests] == ["open_store"]

    @pytest.mark.spec("SCR-301", "SCR-302")
    @pytest.mark.parametrize(
        "call",
        [
            *("store('a', {1})", "store('a', float('nan'))", "store('a', [1e400])", "store('a', print)"),
            *("store('a', {1: 2})", "store('a', [{'b': {None: 1}}])", "store('', 1)", "store('k' * 201, 1)"),
            *("store(1, 1)", "load('')", "load(None)", "load('k' * 201)"),
        ],
    )
    async def test_what_is_not_kept(self, call: str, caller: Caller) -> None:
        text, told = await caught(caller, call)
        assert text not in ("", "no error\n")
        assert list(told.finished.writes) == []

    @pytest.mark.spec("SCR-309", "SCR-310", "SCR-351")
    async def test_the_sizes(self, caller: Caller) -> None:
        told = await caller.run("store('k' * 200, 'x' * 65534)\nNone")
        assert len(told.finished.writes[0].json) == 65_536
        text, _ = await caught(caller, "store('k', 'x' * 65535)")
        assert "65537" in text
        assert "65536" in text
        nearly = self.holding({"a": "1"}, 262_144 - 10)
        assert (await caller.run("store('bb', 12345678)\nNone", nearly)).finished.writes  # type: ignore[arg-type]
        text, told = await caught(caller, "store('bb', 123456789)", answer=nearly)
        assert text.startswith("the store is full: with this write it would hold 262145 characters")
        assert list(told.finished.writes) == []
        freed = "store('a', None)\nstore('b', 123456789)\nNone"
        assert len((await caller.run(freed, nearly)).finished.writes) == 2  # type: ignore[arg-type]

    @pytest.mark.spec("SCR-317")
    async def test_nowhere_to_keep(self, caller: Caller) -> None:
        for call in ("store('a', 1)", "load('a')"):
            text, told = await caught(caller, call, store=False)
            assert text.startswith("nowhere to keep it")
            assert told.requests == []

    @pytest.mark.spec("SCR-307", "SCR-313")
    async def test_a_script_that_fails_keeps_nothing(self, caller: Caller) -> None:
        told = await caller.run("store('a', 1)\n1 / 0")
        assert told.failed.cause == "ZeroDivisionError"
        many = "for i in range(100): store(str(i), i)\n" + "tools.f()\n" * 25
        assert len((await caller.run(many)).requests) == 26


@pytest.mark.spec("SCR-264")
@pytest.mark.parametrize("wrong", ["seq", "kind", "early", "items"])
async def test_an_answer_out_of_turn_kills_the_script(wrong: str, caller: Caller) -> None:
    def answer(request: pb.FromSandbox) -> pb.ToSandbox:
        match wrong:
            case "seq":
                return pb.ToSandbox(call_result=pb.CallResult(seq=7, ok=True))
            case "kind":
                return pb.ToSandbox(model_result=pb.ModelResult(seq=1, ok=True))
            case "items":
                return pb.ToSandbox(batch_result=pb.BatchResult(seq=1))
            case _:
                return plain_answer(request)

    script = {"items": "tools.batch([{'tool': 'a'}])", "early": "tools.f()\ntools.f()"}.get(
        wrong, "tools.f()"
    )
    if wrong == "early":
        call = caller.stub.Run()
        await call.write(
            pb.ToSandbox(start=pb.ScriptStart(script="for i in range(1900000): pass\ntools.f()"))
        )
        await call.write(pb.ToSandbox(call_result=pb.CallResult(seq=1, ok=True)))
        ends = [message.failed.cause async for message in call if message.HasField("failed")]
        assert ends == ["protocol"]
        return
    failed = (await caller.run("print('lost')\n" + script, answer)).failed
    assert (failed.kind, failed.cause, failed.printed) == (pb.SCRIPT_FAILURE_KIND_KILLED, "protocol", "")


@pytest.mark.spec("SCR-353", "SCR-238")
async def test_times(caller: Caller) -> None:
    busy = "x = [str(i) for i in range(300000)]\nfor i in range(1000): sorted(x)"
    alone = await caller.run(busy, limits=pb.ScriptLimits(alone_seconds=0.5))
    assert (alone.failed.cause, alone.failed.printed) == ("alone", "")
    total = await caller.run(busy, limits=pb.ScriptLimits(total_seconds=0.5))
    assert total.failed.cause == "total"
    cpu = await caller.run(busy, limits=pb.ScriptLimits(cpu_seconds=1))
    assert cpu.failed.cause == "cpu"
    assert "1 seconds of processor time" in cpu.failed.message
