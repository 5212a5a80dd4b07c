"""What scripts do when they run: the acceptance cases and the edges of section 10."""

from __future__ import annotations

import pytest
from crew.v1 import script_sandbox_pb2 as pb

from tests.fixtures.script_sandbox import Caller

PRINTED = {
    "A-01": ('x = [1, 2.0, "a\'b", None, True, ("k",)]\nx', "[1, 2.0, \"a'b\", None, True, ('k',)]\n"),
    "A-02": ('print("a", 1, sep="-", end="!")\nprint("b")', "a-1!b\n"),
    "A-03": ("((1 << 255) - 1) * 2 + 1", f"{2**256 - 1}\n"),
    "A-05": (
        "print(0.1 + 0.2, 1e16, 1e15, 0.0001, 0.00001, -0.0, 2 / 1, 1 / 3)",
        "0.30000000000000004 1e+16 1000000000000000.0 0.0001 1e-05 -0.0 2.0 0.3333333333333333\n",
    ),
    "A-06": ("print(sum([0.1] * 10))", "0.9999999999999999\n"),
    "A-09": (
        'print(zip([1, 2], "ab"), enumerate("x", 5), reversed([1, 2]), (i * i for i in range(3)))\n'
        'print({"k": 1}.items())',
        "[(1, 'a'), (2, 'b')] [(5, 'x')] [2, 1] [0, 1, 4]\n[('k', 1)]\n",
    ),
    "A-10": ("print(-7 // 2, -7 % 2, 7 % -2, -7.5 % 2, 7 / 2)", "-4 1 -1 0.5 3.5\n"),
    "A-19": (
        'd = json.loads(\'{"b": [1, 2.0, null], "a": "\\u00e9", "b2": true}\')\nprint(d)\n'
        'print(json.dumps(d, sort_keys=True), json.dumps("é", ensure_ascii=False))',
        "{'b': [1, 2.0, None], 'a': 'é', 'b2': True}\n"
        '{"a": "\\u00e9", "b": [1, 2.0, null], "b2": true} "é"\n',
    ),
    "A-20": ("fs = [lambda: i for i in range(3)]\ni = 10\nprint([f() for f in fs], i)", "[2, 2, 2] 10\n"),
    "A-07": (
        "s = {3, 1, 2}\ns.add(0)\ns.discard(1)\ns.add(1)\nprint(s)\nprint(s.pop(), list(s))\n"
        "print({5, 4} | {9, 5, 1}, {5, 4, 9} & {9, 5}, {1, 2} ^ {2, 3})",
        "{3, 2, 0, 1}\n1 [3, 2, 0]\n{5, 4, 9, 1} {9, 5} {1, 3}\n",
    ),
    "A-08": (
        'd = {"b": 1, "a": 2}\nd["b"] = 9\nd["c"] = d.pop("a")\nprint(d, {1: "x", True: "y", 1.0: "z"})',
        "{'b': 9, 'c': 2} {1.0: 'z'}\n",
    ),
    "floats": (
        'print(float("1e400"), 1e308 * 10, -float("inf"), round(2.5), round(3.5), round(2.675, 2))',
        "inf inf -inf 2 4 2.67\n",
    ),
    "live for": ("x = [1]\nfor v in x:\n    if len(x) < 4: x.append(v + 1)\nprint(x)", "[1, 2, 3, 4]\n"),
    "error text": ("try:\n    {}['x']\nexcept KeyError as e:\n    print(str(e))", "'x'\n"),
    "strings": ('print(len("é"), len("e\\u0301"), "ß".upper())', "1 2 SS\n"),
    "last value": ("None", ""),
    "nested last": ("if True:\n    5", ""),
    "deep value": (
        "a = []\nfor i in range(150): a = [a]\nlen(json.dumps(a)), json.loads(json.dumps(a)) == a",
        "(302, True)\n",
    ),
    "itself": ("a = [1]\na.append(a)\na", "[1, [...]]\n"),
    "key function calls back": (
        "sorted([3, 1, 2], key=lambda n: len(tools.f(n='x' * n))), min([2, 1], key=lambda n: -n)",
        "([1, 2, 3], 2)\n",
    ),
    "printing a generator": ("print(i for i in [1, 2])", "[1, 2]\n"),
}


@pytest.mark.spec("SCR-197", "SCR-198", "SCR-203", "SCR-204", "SCR-205", "SCR-206", "SCR-207", "SCR-208")
@pytest.mark.spec("SCR-209", "SCR-210", "SCR-214", "SCR-217", "SCR-222", "SCR-223", "SCR-234", "SCR-240")
@pytest.mark.spec("SCR-192", "SCR-186", "SCR-193")
@pytest.mark.parametrize("case", PRINTED)
async def test_a_script_prints(case: str, caller: Caller) -> None:
    script, expected = PRINTED[case]
    assert (await caller.run(script)).printed == expected


STOPPED = {
    "A-04": ('print("start")\nx = (1 << 256) - 1\nprint(x)', 2, "integer", "start\n"),
    "A-15": (
        "def f(n):\n    return 0 if n == 1 else 1 + f(n - 1)\nprint(f(40))\nprint(f(41))",
        2,
        "depth",
        "39\n",
    ),
    "A-16": (
        'print("go")\ntry:\n    while True:\n        pass\nexcept Exception:\n    print("caught")\n'
        'finally:\n    print("finally")',
        3,
        "steps",
        "go\n",
    ),
    "A-17": ('s = "ab" * 4000000\nprint(len(s))\nt = s + "c"', 3, "value", "8000000\n"),
    "bits of a sum": (
        "x = ((1 << 255) - 1) * 2 + 1\ntry:\n    x + 1\nexcept Exception:\n    print(1)",
        3,
        "integer",
        "",
    ),
    "bits of ~": ("x = ((1 << 255) - 1) * 2 + 1\n~x", 2, "integer", ""),
    "bits of a text": ("int('9' * 80)", 1, "integer", ""),
    "bits of a float": ("int(1e300)", 1, "integer", ""),
    "bits in JSON": ("json.loads('[' + '1' * 100 + ']')", 1, "integer", ""),
    "bits of +=": ("x = 1\nfor i in range(300):\n    x += x", 3, "integer", ""),
    "a shift that nobody computes": ("1 << 100000000000", 1, "integer", ""),
    "repeat": ('"a" * 1000000000', 1, "memory", ""),
    "a list": ("[0] * 9000000", 1, "value", ""),
    "replace": ('x = "a" * 3000000\nx.replace("a", "abc")', 2, "value", ""),
    "join": ('x = ["a" * 3000000] * 3\n"".join(x)', 2, "value", ""),
    "extend": ("x = [0] * 4000001\nx.extend([1] * 4000000)", 2, "value", ""),
    "memory": ("x = []\nwhile True:\n    x.append('a' * 7000000 + str(len(x)))", 3, "memory", ""),
    "lambda depth": ("g = lambda n: g(n + 1)\ng(0)", 1, "depth", ""),
    "key function depth": (
        "def f(n):\n    return sorted([1], key=lambda _: f(n + 1))\ntry:\n    f(0)\nexcept RuntimeError:\n    print(1)",
        2,
        "depth",
        "",
    ),
    "endless printing": ('while True: print("x")', 1, "steps", None),
    "endless recursion in a comprehension": (
        "def f(n): return [f(n + 1) for _ in [1]]\nf(0)",
        1,
        "depth",
        "",
    ),
    "a comprehension too long": ("[i for i in range(2000001)]", 1, "steps", ""),
}


@pytest.mark.spec("SCR-187", "SCR-198", "SCR-199", "SCR-200", "SCR-211", "SCR-213", "SCR-233", "SCR-237")
@pytest.mark.spec("SCR-352", "SCR-232")
@pytest.mark.parametrize("case", STOPPED)
async def test_a_limit_that_nothing_catches(case: str, caller: Caller) -> None:
    script, line, cause, printed = STOPPED[case]
    failed = (await caller.run(script)).failed
    assert (failed.kind, failed.cause) == (pb.SCRIPT_FAILURE_KIND_LIMIT, cause)
    assert failed.line == line
    assert failed.message.startswith(f"Stopped at line {line}: ")
    if printed is not None:
        assert failed.printed == printed


ERRORS = {
    "A-18": (
        "try:\n    {}['x']\nexcept KeyError as e:\n    print(str(e))\nprint(10 // 0)",
        5,
        "ZeroDivisionError",
        "'x'\n",
    ),
    "uncaught": ("def f():\n    raise ValueError('boo')\n\nf()", 2, "ValueError", ""),
    "percent": ("'%d' % 5", 1, "TypeError", ""),
    "width": ("f'{5:>10001}'", 1, "ValueError", ""),
    "width of a value": ("w = 10001\nf'{5:>{w}}'", 2, "ValueError", ""),
    "NaN in": ("json.loads('[NaN]')", 1, "ValueError", ""),
    "NaN out": ("json.dumps(1e400)", 1, "ValueError", ""),
    "a set in JSON": ("json.dumps({1})", 1, "TypeError", ""),
    "trailing": ("json.loads('1 2')", 1, "JSONDecodeError", ""),
    "deep JSON": ("json.loads('[' * 300 + ']' * 300)", 1, "JSONDecodeError", ""),
    "another kind's method": ("x = 5\nx.append(1)", 2, "AttributeError", ""),
    "ordering": ("1 < 'a'", 1, "TypeError", ""),
    "summing texts": ("sum(['a'], '')", 1, "TypeError", ""),
    "a set that grows": ("s = {1, 2}\nfor x in s:\n    s.add(x + 10)", 2, "RuntimeError", ""),
    "a dict that grows": ("d = {1: 1}\nfor x in d:\n    d[x + 1] = 1", 2, "RuntimeError", ""),
    "before it is bound": ("def f():\n    print(x)\n    x = 1\nf()", 2, "UnboundLocalError", ""),
    "the name of an error is gone": (
        "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    pass\ne",
        5,
        "NameError",
        "",
    ),
    "nan to int": ("int(float('nan'))", 1, "ValueError", ""),
    "infinity to int": ("int(float('inf'))", 1, "OverflowError", ""),
    "a bare raise": ("raise", 1, "RuntimeError", ""),
    "a multi-line statement": ("x = [\n    1,\n    2 // 0,\n]", 3, "ZeroDivisionError", ""),
    "zero step": ("range(1, 2, 0)", 1, "ValueError", ""),
    "a failed assertion": ("assert 1 == 2", 1, "AssertionError", ""),
}


@pytest.mark.spec("SCR-194", "SCR-195", "SCR-196", "SCR-204", "SCR-209", "SCR-222", "SCR-223", "SCR-224")
@pytest.mark.spec("SCR-234", "SCR-235", "SCR-219")
@pytest.mark.parametrize("case", ERRORS)
async def test_an_error_ends_a_script_at_its_line(case: str, caller: Caller) -> None:
    script, line, cause, printed = ERRORS[case]
    failed = (await caller.run(script)).failed
    assert (failed.kind, failed.cause, failed.line) == (pb.SCRIPT_FAILURE_KIND_ERROR, cause, line)
    assert failed.message.startswith(f"Error at line {line}: {cause}")
    assert failed.printed == printed


@pytest.mark.spec("SCR-232")
async def test_the_same_errors_can_be_caught(caller: Caller) -> None:
    for case, (script, _, cause, printed) in ERRORS.items():
        body = "\n".join("    " + line for line in script.splitlines())
        told = await caller.run(
            f"def script():\n{body}\ntry:\n    script()\nexcept Exception as error:\n    print('caught')"
        )
        assert told.printed == f"{printed}caught\n", (case, cause)


@pytest.mark.spec("SCR-172", "SCR-260")
@pytest.mark.parametrize(
    ("script", "line"),
    [
        ('print("before")\nwith open("x") as f:\n    print(f)', 2),
        ("x = 5\nprint(x.real)", 2),
        ('print("ok")\nprint("{0.__class__}".format(1))', 2),
        ("print(2 * 3)\nprint(2 ** 3)", 2),
        ("tools.f()\nclass A: pass", 2),
    ],
)
async def test_nothing_of_a_refused_script_runs(script: str, line: int, caller: Caller) -> None:
    told = await caller.run(script)
    assert told.rejected.line == line
    assert told.accepted is None
    assert told.requests == []


@pytest.mark.spec("SCR-236", "SCR-237", "SCR-351")
async def test_two_million_steps_and_one_more(caller: Caller) -> None:
    assert (await caller.run("for i in range(100000): pass")).finished.steps == 100_000
    assert (await caller.run("print(sum([i for i in range(100000)]))")).printed == "4999950000\n"
    few = pb.ScriptLimits(steps=100)
    assert (await caller.run("for i in range(100): pass", limits=few)).finished.steps == 100
    assert (await caller.run("for i in range(101): pass", limits=few)).failed.cause == "steps"
    assert (await caller.run("[i for i in range(100)]\nNone", limits=few)).finished.steps == 100
    assert (await caller.run("def f(): pass\nfor i in range(51): f()", limits=few)).failed.cause == "steps"


@pytest.mark.spec("SCR-241", "SCR-242", "SCR-243", "SCR-239")
async def test_printing_past_the_limit_keeps_both_ends(caller: Caller) -> None:
    whole = (await caller.run('print("a" * 60000, end="")')).finished
    assert (whole.printed, whole.printed_chars) == ("a" * 60_000, 60_000)
    told = (await caller.run('print("a" * 30000 + "b" * 30001, end="")')).finished
    assert told.printed_chars == 60_001
    assert len(told.printed) <= 60_000
    head, marker, tail = told.printed.partition("…[the script printed 60001 characters, ")
    dropped = int(marker and tail.split(" ")[0])
    end = tail.partition("]…")[2]
    assert head == "a" * len(head)
    assert end == "b" * len(end)
    assert len(head) + len(end) + dropped == 60_001
    assert 0 <= len(head) - len(end) <= 1
    flood = (await caller.run('for i in range(100000): print("x" * 100)', locale="vi")).finished
    assert flood.printed_chars == 10_100_000
    assert len(flood.printed) <= 60_000
    assert "…[script in ra 10100000 ký tự, bỏ " in flood.printed


@pytest.mark.spec("SCR-246")
async def test_what_no_database_holds_is_replaced(caller: Caller) -> None:
    assert (await caller.run('print("a\\x00b")')).printed == "a\ufffdb\n"


@pytest.mark.spec("SCR-263", "SCR-259")
async def test_inputs_are_texts_in_order(caller: Caller) -> None:
    told = await caller.run(
        "print(len(inputs), [len(text) for text in inputs])", inputs=["a" * 1_200_000, "", "é"]
    )
    assert told.printed == "3 [1200000, 0, 1]\n"
