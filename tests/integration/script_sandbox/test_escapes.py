"""What an attacker would write. Every attempt is refused before it runs, or harmless when it does.

Harmless means: it asks nothing it may not ask, shows nothing of the machine, ends by itself or by its
limit, and leaves the service serving. All of it is bounded by the limits of one script.
"""

from __future__ import annotations

import pickle

import pytest
from crew.v1 import script_sandbox_pb2 as pb

from tests.fixtures.script_sandbox import Caller, Told

INTROSPECTION = [
    "().__class__.__bases__[0].__subclasses__()",
    "''.__class__.__mro__",
    "print(__builtins__)",
    "print(__name__, __file__, __doc__)",
    "__import__('os').system('id')",
    "print.__self__",
    "print.__globals__",
    "(lambda: 0).__code__",
    "def f(): pass\nf.__globals__['x'] = 1",
    "[].append.__self__",
    "type('x', (), {})",
    "getattr('a', '__class__')",
    "vars()",
    "globals()['__stop']('x')",
    "locals()",
    "dir()",
    "object()",
    "super()",
    "eval('1')",
    "exec('x = 1')",
    "compile('1', 'x', 'eval')",
    "breakpoint()",
    "help()",
    "memoryview(b'x')",
    "open('/etc/passwd').read()",
    "import os",
    "from os import environ",
    "import sys, ctypes",
    "import json.decoder",
    "json.decoder.scanner",
    "json.codecs.open('/etc/passwd')",
    "json.loads.__globals__",
    "tools.__class__",
    "tools.names.__self__",
    "llm.client",
    "class A:\n    def __del__(self): pass",
    "@print\ndef f(): pass",
    "async def f(): await f()",
    "def f():\n    x = yield\n    return x",
]
OWN_NAMES = [
    "__stop('x')",
    "__steps = -10**9",
    "__host('tool', 1, 'x', '{}')",
    "__max_steps = 10",
    "__json.loads('1')",
    "def __v(x): return x",
    "_＿host('tool', 1, 'x', '{}')",
    "[__steps for __steps in [0]]",
    "for __steps in [0]: pass",
    "try:\n    1 / 0\nexcept Exception as __steps:\n    pass",
    "lambda __v: __v",
    "print(sep=__texts)",
    "x = 1\nx.__init__()",
    "tools.f(__line=1)",
]
FORMATS = [
    "'{0.__class__}'.format(1)",
    "'{0[x]}'.format_map({})",
    "print(f'{1!a}')",
    "f'{print.__globals__}'",
    "f'{(lambda: __steps)()}'",
    "'%s %(x)s' % {'x': 1}",
    "f'{1:{10**9}}'",
    "w = 1000000000\nf'{1:{w}}'",
    "w = '>' + '9' * 9\nf'{1:{w}}'",
    "f'{1:.999999999f}'",
    "w = '0' * 18000\nf'{1:{w}}'",
    "f'{1:__class__}'",
    "f'{1:\\x00}'",
]
EXCEPTIONS = [
    "try:\n    1 / 0\nexcept Exception as e:\n    print(e.__traceback__.tb_frame.f_globals)",
    "try:\n    1 / 0\nexcept Exception as e:\n    print(e.args)",
    "try:\n    1 / 0\nexcept BaseException:\n    pass",
    "raise SystemExit",
    "raise KeyboardInterrupt",
    "raise MemoryError('x')",
    "raise RecursionError",
    "try:\n    while True: pass\nexcept:\n    print('escaped')\nfinally:\n    print('escaped')",
    "def f():\n    try:\n        f()\n    finally:\n        f()\nf()",
    "def f():\n    try:\n        f()\n    except:\n        f()\nf()",
    "try:\n    [0] * 10000000000000\nexcept:\n    print('escaped')\nfinally:\n    print('escaped')",
    "raise ValueError('x') from tools",
    "e = ValueError('a' * 7000000)\nraise e",
    "try:\n    raise KeyError([[]] * 100000)\nexcept KeyError as e:\n    print(len(str(e)))",
    "def f():\n    return f\nraise f()",
]
HUGE_AND_DEEP = [
    "a = []\nfor i in range(200000): a = [a]\nprint(len(str(a)))",
    "a = ()\nfor i in range(200000): a = (a,)\nprint(a == a, {a: 1})",
    "a = []\nb = []\nfor i in range(100000):\n    a = [a]\n    b = [b]\na == b",
    "a = {}\nfor i in range(100000): a = {'k': a}\njson.dumps(a)",
    "a = []\na.append(a)\nb = []\nb.append(b)\na == b",
    "a = {}\na['a'] = a\nprint(a)\njson.dumps(a)",
    "a = []\nfor i in range(100): a = [a, a]\nstr(a)",
    "a = []\nfor i in range(100): a = [a, a]\njson.dumps(a)",
    "a = []\nfor i in range(100): a = [a, a]\ntools.f(a=a)",
    "a = []\nfor i in range(100): a = [a, a]\nstore('k', a)",
    "a = []\nfor i in range(100000): a = [a]\ntools.f(a=a)",
    "x = 'a'\nfor i in range(100): x += x",
    "x = [0]\nfor i in range(100): x += x",
    "x = 7\nfor i in range(100): x *= x",
    "1 << (1 << 200)",
    "(1 << 255) * (1 << 255)",
    "int('9' * 7000000)",
    "float('9' * 7000000)",
    "'0' * 10000000000",
    "'a'.ljust(10000000000)",
    "'a'.zfill(9223372036854775807)",
    "range(10000000000000)[9999999999999]",
    "len(range(9223372036854775807)), sum(range(3))",
    "list(range(9223372036854775807))",
    "[0] * -5, 'a' * -9223372036854775808",
    "[1, 2, 3][9223372036854775808]",
    "[1, 2, 3][::-9223372036854775808]",
    "x = [1]\nx.insert(-9223372036854775808, 2)\nprint(x)",
    "'a'.replace('', 'b' * 7000000)",
    "('a' * 3000).replace('', 'b' * 3000)",
    "','.join(['a' * 100000] * 100)",
    "sum([[0] * 1000] * 10000, [])",
    "x = {}\nfor i in range(1900000): x[i] = i",
    "print(*range(100000), sep='x' * 1000)",
    "-9223372036854775808 // -1, abs(-9223372036854775808), -(-9223372036854775808)",
    "round(1e308, -308), round(123456789, -400), round(5e-324, 400)",
    "json.loads('[' * 100000)",
    "json.loads('{\"a\":' * 100000)",
    "json.loads('1e' + '9' * 10000)",
    "json.loads('1' * 100000)",
    "json.dumps({i: 'x' * 1000 for i in range(100000)})",
    "json.dumps(1, indent=100000000)",
    "json.dumps([[1]] , indent='x' * 7000000)",
    "json.dumps([1], separators=('a' * 7000000, 'b'))",
]
BOMBS = [
    "sorted([str(i) for i in range(900000)] , key=lambda s: s[::-1])",
    "x = [[i % 2] * 1000 for i in range(10000)]\nfor i in range(100000): x.sort()",
    "x = ['a' * 100000 + str(i) for i in range(50)]\nfor i in range(100000): sorted(x)",
    "('a' * 3000000 + 'b').count('a' * 1000000 + 'c')",
    "x = 'ab' * 1000000\nfor i in range(100000): x.find('ba' * 500000 + 'c')",
    "x = 'a' * 4000000\nfor i in range(1000000): x.split('a')",
    "def f(n): return f(n + 1) + f(n + 1)\nf(0)",
    "f = lambda n: 1 if n > 38 else f(n + 1) + f(n + 1)\nf(0)",
    "while True: print('x' * 100000)",
    "for i in range(10 ** 0): pass",
    "[[j for j in range(2000)] for i in range(2000)]",
    "x = [1]\nfor i in x: x.append(i)",
    "while True:\n    try: tools.f()\n    except Exception: pass",
    "while True:\n    try: load('k')\n    except Exception: pass",
    "while True: store('k', 1)",
    "while True:\n    try: tools.names()\n    except Exception: pass",
    "def f(): f()\nsorted(range(100000), key=lambda n: f())",
    "x = [1, 2]\nx.sort(key=lambda n: x.clear())\nprint(x)",
    "x = [3, 1, 2]\nx.sort(key=lambda n: x.append(n))\nprint(x)",
    "d = {1: 1}\nfor k in d.keys(): d[k + 1] = 1\nprint(len(d))",
    "x = [1, 2, 3]\nfor v in x: x.remove(v)\nprint(x)",
    "min([[1]] * 100000, key=lambda n: min([[1]] * 1000, key=lambda m: m))",
]
UNICODE = [
    "ｅｖａｌ('1')",
    "ｏｐｅｎ('/etc/passwd')",
    "𝔤𝔩𝔬𝔟𝔞𝔩𝔰()",
    "x = 1\nx.__ｃｌａｓｓ__",
    "ｔｏｏｌｓ = 1",
    "print('\u202egnp.exe\u202c')",
    "ſum = 1\nsum([1])",
    "x = 'a\\ud800'\nprint(x)",
    "print(json.loads('\"\\\\ud800\"'))",
    "print('\\N{NULL}', len('\\x00'))",
    "'İ'.lower(), 'ß'.upper(), 'ﬁ'.title(), '\U0001d7d8'.isdigit(), int('٣')",
    "x\u2028= 1",
    "# \u2029 import os\nprint(1)",
    "'\\u0000'.join(['a', 'b'])",
    "print('e\\u0301' == 'é')",
    "#coding: utf-7\n+AG8AcwA-",
    "\ufeffprint(1)",
    "print(1)\x0cimport os",
    "print(1)\rimport os",
]
ALL = {
    f"{kind} {place}": script
    for kind, scripts in {
        "introspection": INTROSPECTION,
        "own name": OWN_NAMES,
        "format": FORMATS,
        "exception": EXCEPTIONS,
        "huge": HUGE_AND_DEEP,
        "bomb": BOMBS,
        "unicode": UNICODE,
    }.items()
    for place, script in enumerate(scripts)
}
MAY_ASK = {"tool_call", "lookup", "open_store"}
# Seconds of processor time: enough for anything honest, and the whole list stays bounded.
LIMITS = pb.ScriptLimits(cpu_seconds=3, alone_seconds=20, total_seconds=30)


def test_the_list_is_long_enough() -> None:
    assert len(ALL) >= 80


@pytest.mark.spec("SCR-175", "SCR-177", "SCR-211", "SCR-213", "SCR-214", "SCR-233", "SCR-254", "SCR-238")
@pytest.mark.parametrize("attempt", ALL)
async def test_an_attempt(attempt: str, caller: Caller) -> None:
    told = await caller.run(ALL[attempt], limits=LIMITS)
    assert told.end is not None
    harmless(told)
    assert (await caller.run("print(1 + 1)")).printed == "2\n"


def harmless(told: Told) -> None:
    assert {request.WhichOneof("message") for request in told.requests} <= MAY_ASK
    assert len(told.requests) <= 66
    for request in told.requests:
        if request.HasField("tool_call"):
            assert request.tool_call.name == "f"
    assert told.end is not None
    if told.end.HasField("rejected"):
        return
    text = told.failed.printed + told.failed.message if told.end.HasField("failed") else told.printed
    for sign in ("root:", "escaped", "/usr", "/lib", "0x7f", "<frame", "<module", "environ", "__host"):
        assert sign not in text, sign
    if told.end.HasField("failed"):
        assert told.failed.cause not in ("died", "protocol", "total")


@pytest.mark.spec("SCR-285")
@pytest.mark.parametrize(
    "state",
    [
        b"\x00",
        b"crew-script-1\n",
        b"crew-script-1\n\xff\xff\xff\xff{}",
        b"crew-script-1\n\x00\x00\x00\x02{}MONTY",
        pickle.dumps({"a": print}),
        b"crew-script-1\n\x00\x00\x00\x05[1,2]" + b"[" * 100_000,
    ],
)
async def test_bytes_that_are_no_checkpoint_begin_at_the_first_line(state: bytes, caller: Caller) -> None:
    told = await caller.run("print('from the start')", resume=state)
    assert told.accepted is not None
    assert not told.accepted.resumed
    assert told.printed == "from the start\n"


async def test_a_checkpoint_with_a_damaged_dump_begins_at_the_first_line(caller: Caller) -> None:
    script = "print('a')\ntools.f()\nprint('b')"
    state = (await caller.run(script, checkpoints=True)).checkpoints[0].state
    for damaged in (
        state[:-40],
        state[: len(state) // 2],
        state[:300] + bytes(2_000) + state[2_300:],
        state + b"x" * 10,
    ):
        told = await caller.run(script, resume=damaged)
        assert told.end is not None
        if told.accepted is not None and not told.accepted.resumed:
            assert told.printed == "a\nb\n"
    other = await caller.run("print('c')", resume=state)
    assert other.printed == "c\n"
