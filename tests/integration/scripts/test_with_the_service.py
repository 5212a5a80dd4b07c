"""Scripts as a model writes them, in the real sandbox, through a whole turn (script.md, section 21)."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from tests.fixtures.crew import Crew, running_crew
from tests.fixtures.model_server import ModelServer, call, text, turn

OPENING = "The script did not finish."
OPENING_VI = "Script không chạy xong."


@dataclass
class Ran:
    """What a script came to."""

    text: str
    ok: bool
    calls: list[dict[str, Any]]
    received_chars: int
    printed_chars: int

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()


@dataclass
class Person:
    """Has a model write scripts, in one conversation."""

    crew: Crew
    server: ModelServer
    conversation_id: str

    async def run(self, script: str) -> Ran:
        self.server.play(call("tool_script", {"script": script}), text("Done."))
        events = await self.crew.send(self.conversation_id, "go")
        result = next(event.tool_result for event in events if event.WhichOneof("event") == "tool_result")
        content = self.server.requests[-1].messages[-1]["content"]
        return Ran(content, result.ok, json.loads(result.calls), result.received_chars, result.printed_chars)


@asynccontextmanager
async def person(database, server: ModelServer, agent: str = "", **fields: Any) -> AsyncIterator[Person]:
    environ = {"MY_AGENT_ROUTES": "openai:test", "OPENAI_BASE_URL": server.base_url}
    environ |= {"OPENAI_API_KEY": "sk-of-the-test", "MY_AGENT_LANGUAGE": fields.pop("language", "en")}
    async with running_crew(
        database, agent=f"tool_output_chars: 100000\n{agent}", environ=environ, scripts=True
    ) as crew:
        for n in range(10):
            (crew.workspace / f"{n}.txt").write_text(f"file {n}\n")
        yield Person(crew, server, await crew.open(**fields))


@pytest.mark.spec("SCR-001", "SCR-239", "SCR-240", "SCR-042", "SCR-044")
async def test_a_model_gets_back_what_its_script_printed(database, model_server):
    async with person(database, model_server) as someone:
        ran = await someone.run(
            "first = tools.workspace_read(path='1.txt')\n"
            "second = tools.workspace_read({'path': '2.txt'})\n"
            "third = tools.workspace_read(**{'path': '3.txt'})\n"
            "print([('file 1' in first), ('file 2' in second), ('file 3' in third)])\n"
            "len([first, second, third])"
        )
    assert ran.text == "[True, True, True]\n3\n"
    assert [each["name"] for each in ran.calls] == ["workspace_read"] * 3
    assert ran.printed_chars == len(ran.text)


@pytest.mark.spec("SCR-069", "SCR-070", "SCR-076", "SCR-078")
async def test_case_25_a_batch_answers_in_its_order(database, model_server):
    async with person(database, model_server) as someone:
        ran = await someone.run(
            "rows = tools.batch([{'tool': 'workspace_read', 'args': {'path': '1.txt'}}, {'tool': 'nope'}])\n"
            "print([row['ok'] for row in rows])\n"
            "print('file 1' in rows[0]['output'], 'tools.names()' in rows[1]['error'])\n"
            "for n in range(23):\n"
            "    tools.workspace_list()\n"
            "print('25 used')\n"
            "try:\n"
            "    tools.workspace_list()\n"
            "except Exception:\n"
            "    print('caught')"
        )
    assert ran.lines[:4] == [OPENING, "[True, False]", "True True", "25 used"]
    assert "line 8" in ran.lines[4]
    assert "caught" not in ran.text
    assert len(ran.calls) == 25


@pytest.mark.spec("SCR-068", "SCR-073")
async def test_case_26_batches_of_a_wrong_shape_count_nothing(database, model_server):
    wrong = ["[]", "[{'tool': 'workspace_list'}] * 11", "[{'tool': 'workspace_list', 'x': 1}]"]
    tries = "".join(
        f"try:\n    tools.batch({each})\nexcept Exception as e:\n    print(str(e))\n" for each in wrong
    )
    async with person(database, model_server) as someone:
        ran = await someone.run(f"{tries}for n in range(25):\n    tools.workspace_list()\nprint('25 left')")
    assert ran.ok
    assert len(ran.lines) == 4
    assert "0" in ran.lines[2]
    assert ran.lines[3] == "25 left"


@pytest.mark.spec("SCR-049")
async def test_case_24_a_name_that_is_nearly_right(database, model_server):
    async with person(database, model_server) as someone:
        ran = await someone.run(
            "try:\n    tools.workspace_raed(path='a')\nexcept ToolError as e:\n    print(str(e))"
        )
    assert ran.ok
    assert "`workspace_read`" in ran.text
    assert "tools.names()" in ran.text


@pytest.mark.spec("SCR-051", "SCR-052", "SCR-232", "SCR-233", "SCR-273")
@pytest.mark.parametrize(
    ("language", "opening", "said"),
    [
        ("en", OPENING, "Stopped at line 2: `workspace_write` is not open to scripts because it may"),
        ("vi", OPENING_VI, "Dừng ở dòng 2: `workspace_write` không mở cho script"),
    ],
)
async def test_case_23_no_except_catches_a_refusal(database, model_server, language, opening, said):
    async with person(database, model_server, language=language) as someone:
        ran = await someone.run(
            "try:\n"
            "    tools.workspace_write(files=[{'path': 'x', 'content': 'a secret'}])\n"
            "except Exception:\n    print('caught')\nfinally:\n    print('finally')"
        )
        assert not (someone.crew.workspace / "x").exists()
    assert ran.lines[0] == opening
    assert ran.lines[1].startswith(said)
    assert "caught" not in ran.text
    assert "finally" not in ran.text
    assert "a secret" not in ran.text
    assert ran.calls == []


@pytest.mark.spec("SCR-172", "SCR-173", "SCR-354")
async def test_a_script_that_is_not_in_the_language_runs_nothing(database, model_server):
    async with person(database, model_server) as someone:
        ran = await someone.run("tools.workspace_list()\nimport os")
    assert ran.lines[0] == OPENING
    assert ran.lines[1].startswith("Not run: line 2: ")
    assert ran.calls == []


@pytest.mark.spec("SCR-241", "SCR-242", "SCR-243", "SCR-351")
async def test_case_33_more_than_60000_characters_lose_their_middle(database, model_server):
    async with person(database, model_server) as someone:
        whole = await someone.run('print("a" * 60000, end="")')
        cut = await someone.run('print("a" * 60001, end="")')
    assert (whole.text, whole.printed_chars) == ("a" * 60_000, 60_000)
    assert len(cut.text) <= 60_000
    assert cut.text[0] == cut.text[-1] == "a"
    assert cut.text.count("60001") == 1
    assert cut.printed_chars == 60_001


@pytest.mark.spec("SCR-058", "SCR-059", "SCR-061", "SCR-064", "SCR-067")
async def test_looking_tools_up_costs_no_call(database, model_server):
    async with person(database, model_server) as someone:
        ran = await someone.run(
            "print(tools.names())\n"
            "print([each['name'] for each in tools.search('read a file')][:1])\n"
            "print(tools.describe('workspace_read').splitlines()[0][:20])\n"
            "try:\n    tools.describe('workspace_write')\nexcept ToolError as e:\n    print('not open')"
        )
    names = json.loads(ran.lines[0].replace("'", '"'))
    assert {"workspace_read", "workspace_list"} <= set(names)
    assert not {"workspace_write", "ask_user", "tool_script"} & set(names)
    assert ran.lines[1:] == ["['workspace_read']", "workspace_read(path:", "not open"]
    assert ran.calls == []


@pytest.mark.spec("SCR-021", "SCR-040", "SCR-005")
async def test_case_21_a_writing_agent_has_scripts_only_when_gated(database, model_server):
    async with person(database, model_server, "tools: [workspace_write]\nscript_calls: gated\n") as someone:
        ran = await someone.run("print(tools.names())")
        assert model_server.requests[0].tool_names == ["workspace_write", "tool_script"]
    assert ran.text == "['workspace_write']\n"


@pytest.mark.spec("SCR-085", "SCR-087", "SCR-095", "SCR-088", "SCR-090")
async def test_case_28_the_shell_in_a_gated_script(database, model_server):
    agent = 'script_calls: gated\nshell_allow_patterns: ["echo hello"]\nshell_ask_patterns: ["date"]\n'
    async with person(database, model_server, agent) as someone:
        allowed = await someone.run("print(tools.shell_run(command='echo hello'))")
        other = await someone.run("tools.shell_run(command='make the-secret')")
        asks = await someone.run("tools.shell_run(command='date +the-secret')")
    assert "hello" in allowed.text
    assert allowed.calls[0]["gated"] is True
    for ran in (other, asks):
        assert ran.lines[0] == OPENING
        assert "`shell_run`" in ran.text
        assert "directly" in ran.text
        assert "the-secret" not in ran.text
        assert ran.calls == []
    assert '"date"' in asks.text


@pytest.mark.spec("SCR-144", "SCR-148", "SCR-170", "SCR-026")
async def test_case_29_a_script_asks_a_model(database, model_server):
    async with person(database, model_server, language="vi") as someone:
        script = (
            "labels = ['việc cần làm', 'hoá đơn']\n"
            "for mail in ['một', 'hai']:\n"
            "    try:\n        print(llm.classify(mail, labels) == 'hoá đơn')\n"
            "    except ToolError as e:\n        print(str(e))"
        )
        model_server.play(
            call("tool_script", {"script": script}),
            text("**Hoá đơn**."),
            text("hoá đơn hoặc việc cần làm"),
            text("Xong."),
        )
        await someone.crew.send(someone.conversation_id, "go")
        printed = model_server.requests[-1].messages[-1]["content"].splitlines()
    assert printed == ["True", "model trả lời không đúng một nhãn nào trong labels."]


@pytest.mark.spec("SCR-140", "SCR-143", "SCR-139")
async def test_case_30_a_wrong_question_asks_nobody(database, model_server):
    async with person(database, model_server) as someone:
        before = len(model_server.requests)
        ran = await someone.run(
            "try:\n    llm.summarise('x' * 20001)\nexcept ToolError as e:\n    print(str(e))"
        )
        assert len(model_server.requests) == before + 2
    assert ran.text.startswith("llm.summarise(text, max_chars=500)")
    assert ran.calls == []


@pytest.mark.spec("SCR-299", "SCR-304", "SCR-305", "SCR-306", "SCR-307", "SCR-313")
async def test_case_32_what_a_failed_script_stored_is_not_kept(database, model_server):
    async with person(database, model_server) as someone:
        failed = await someone.run("store('k', 1)\nprint(load('k'))\n1 / 0")
        after = await someone.run("print(load('k'))\nstore('k', [1, None, 'é'])\nprint(load('k'))")
        kept = await someone.run("value = load('k')\nvalue.append(2)\nprint(value, load('k'))")
        # Another conversation has a store of its own.
        someone.conversation_id = await someone.crew.open()
        elsewhere = await someone.run("print(load('k'))")
    assert failed.lines[:2] == [OPENING, "1"]
    assert failed.lines[2].startswith("Error at line 3: ZeroDivisionError")
    assert after.text == "None\n[1, None, 'é']\n"
    assert kept.text == "[1, None, 'é', 2] [1, None, 'é']\n"
    assert elsewhere.text == "None\n"


@pytest.mark.spec("SCR-071", "SCR-055")
async def test_ten_reads_of_one_line_and_what_the_model_sees_of_them(database, model_server):
    async with person(database, model_server) as someone:
        for n in range(10):
            (someone.crew.workspace / f"{n}.txt").write_text(f"needle {n}\n" + "hay\n" * 1_000)
        ran = await someone.run(
            "rows = tools.batch([{'tool': 'workspace_read', 'args': {'path': str(n) + '.txt'}}"
            " for n in range(10)])\n"
            "for row in rows:\n"
            "    print([line for line in row['output'].splitlines() if 'needle' in line][0][-8:])"
        )
    assert ran.lines == [f"needle {n}" for n in range(10)]
    assert ran.received_chars > 10 * 4_000
    # 40,000 characters were read and 90 reach the model.
    assert math.isclose(ran.printed_chars, 90)


@pytest.mark.spec("SCR-060", "SCR-074", "SCR-141", "SCR-142", "SCR-067")
@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("tools.search('file', limit=0)", "limit"),
        ("tools.search('file', limit=11)", "limit"),
        ("tools.search('x' * 1001)", "1"),
        ("llm.classify('x', ['a'])", "llm.classify(text, labels): labels must be a list of 2 to 20"),
        ("llm.classify('x', ['a', ' A '])", "llm.classify(text, labels): labels must be a list of 2 to 20"),
        ("llm.summarise('x', 4001)", "llm.summarise(text, max_chars=500)"),
        ("llm.summarise('x', True)", "llm.summarise(text, max_chars=500)"),
        ("tools.batch([{'tool': 'workspace_list'}] * 10)", "only 5 of 25 calls are left"),
    ],
)
async def test_wrong_parameters_are_errors_that_count_nothing(database, model_server, source, said):
    async with person(database, model_server) as someone:
        ran = await someone.run(
            "tools.batch([{'tool': 'workspace_list'}] * 10)\n"
            "tools.batch([{'tool': 'workspace_list'}] * 10)\n"
            f"try:\n    {source}\nexcept ToolError as e:\n    print(str(e))\n"
            "tools.batch([{'tool': 'workspace_list'}] * 5)\nprint('25 calls')"
        )
    assert ran.ok, ran.text
    assert said in ran.lines[0]
    assert ran.lines[1] == "25 calls"
    assert len(ran.calls) == 25


PAGE = "owner: somebody\ntitle: A page\nstate: open\n" + ("Other words of this page. " * 8 + "\n") * 48
THREE_FIELDS = """
for first in (0, 10):
    names = [f"page-{first + n}.txt" for n in range(10)]
    rows = tools.batch([{"tool": "workspace_read", "args": {"path": name}} for name in names])
    for row in rows:
        print("; ".join([line.split("| ")[-1] for line in row["output"].splitlines() if ": " in line][:3]))
"""


@pytest.mark.spec("SCR-364")
async def test_a_script_puts_under_five_percent_of_direct_calls_before_the_model(database, model_server):
    async with person(database, model_server) as someone:
        for n in range(20):
            (someone.crew.workspace / f"page-{n}.txt").write_text(PAGE)
        reads = [
            {"call": {"name": "workspace_read", "arguments": {"path": f"page-{n}.txt"}}} for n in range(20)
        ]

        async def told(*steps: Any) -> int:
            """Characters of results that the model was sent."""
            model_server.play(turn(*steps), text("Done."))
            await someone.crew.send(await someone.crew.open(), "go")
            messages = model_server.requests[-1].messages
            return sum(len(message["content"]) for message in messages if message["role"] == "tool")

        direct = await told(*reads)
        script = await told({"call": {"name": "tool_script", "arguments": {"script": THREE_FIELDS}}})
    # Of the twenty results the model is told the newest ten whole, of the others that they were read.
    assert direct > 100_000
    assert script < 0.05 * direct
    assert script > 20 * len("owner: somebody")
