"""Every rule of the language, each by a script that breaks it and one that does not."""

from __future__ import annotations

import pytest

from services.common.wording.catalogue import LOCALES
from services.script_sandbox.dialect import Refused, check_script
from services.script_sandbox.dialect.parsing import MAX_NESTING
from services.script_sandbox.dialect.vocabulary import ANY_METHOD, EXCEPTIONS, FUNCTIONS, METHODS

LIMIT = 20_000


def refused(script: str, *, inputs: bool = False) -> Refused:
    with pytest.raises(Refused) as caught:
        check_script(script, max_chars=LIMIT, inputs=inputs)
    for locale in LOCALES:
        assert str(caught.value.line) in caught.value.text(locale)
    return caught.value


def accepted(script: str, *, inputs: bool = False) -> None:
    check_script(script, max_chars=LIMIT, inputs=inputs)


REFUSED_STATEMENTS = [
    ("import os", "statement.import"),
    ("import json as j", "statement.import"),
    ("import json, os", "statement.import"),
    ("from json import loads", "statement.import"),
    ("class A:\n    pass", "statement.class"),
    ("x = 1\ndel x", "statement.del"),
    ("with x as y:\n    pass", "statement.with"),
    ("def f():\n    global x\n    x = 1", "statement.global"),
    ("def f():\n    x = 1\n    def g():\n        nonlocal x\n        x = 2", "statement.global"),
    ("def f():\n    yield 1", "statement.yield"),
    ("def f(x):\n    yield from x", "statement.yield"),
    ("match 1:\n    case 1:\n        pass", "statement.match"),
    ("async def f():\n    pass", "statement.async"),
    ("async def f():\n    await f()", "statement.async"),
    ("def d(f): return f\n@d\ndef f(): pass", "statement.decorator"),
    ("try:\n    pass\nexcept* ValueError:\n    pass", "statement.except_group"),
    ("def f(*a): pass", "statement.collecting_parameter"),
    ("def f(**k): pass", "statement.collecting_parameter"),
    ("f = lambda *a: 1", "statement.collecting_parameter"),
    ("def f(a, /): pass", "statement.positional_only"),
    ("raise ValueError('a', 'b')", "statement.raise"),
    ("raise 'text'", "statement.raise"),
    ("try:\n    pass\nexcept print:\n    pass", "statement.except"),
    ("x = 1\nx.y = 2", "expression.attribute"),
    ("x = 1\nfor x.y in [1]: pass", "expression.attribute"),
]


@pytest.mark.spec("SCR-181", "SCR-182", "SCR-183", "SCR-184", "SCR-231")
@pytest.mark.parametrize(("script", "key"), REFUSED_STATEMENTS)
def test_a_statement_outside_the_language(script: str, key: str) -> None:
    assert refused(script).fault.key == key


REFUSED_EXPRESSIONS = [
    ("2 ** 3", "expression.power"),
    ("x = 2\nx **= 3", "expression.power"),
    ("x = 1\nx @ x", "expression.matrix"),
    ("x = 1\nx.real", "expression.attribute"),
    ("sorted(['a'], key=str.lower)", "expression.attribute"),
    ("(x := 1)", "expression.walrus"),
    ("b'a'", "literal.bytes"),
    ("1j", "literal.complex"),
    ("...", "literal.ellipsis"),
    ("'a' is 'b'", "expression.is"),
    ("x = 1\nx is not x", "expression.is"),
    ("f'{1!a}'", "expression.conversion"),
    (f"x = {2**256}", "literal.integer"),
    ("x = 'a'\nx.format(1)", "call.format"),
    ("'{0.__class__}'.format(1)", "call.format"),
    ("'a'.encode()", "call.method"),
    ("'a'.translate({})", "call.method"),
    ("dict.fromkeys([1])", "call.method"),
    ("(1).bit_length()", "call.method"),
    ("print(1, file=2)", "call.parameter"),
    ("print(1, flush=True)", "call.parameter"),
    ("zip([1], [2], strict=True)", "call.parameter"),
    ("json.load('x')", "call.json"),
    ("llm.ask('x')", "call.llm"),
]


@pytest.mark.spec("SCR-189", "SCR-190", "SCR-191", "SCR-194", "SCR-195", "SCR-199", "SCR-219", "SCR-220")
@pytest.mark.spec("SCR-224", "SCR-230", "SCR-138")
@pytest.mark.parametrize(("script", "key"), REFUSED_EXPRESSIONS)
def test_an_expression_outside_the_language(script: str, key: str) -> None:
    assert refused(script).fault.key == key


@pytest.mark.spec("SCR-176")
@pytest.mark.parametrize(
    "name",
    [
        *("open", "eval", "exec", "getattr", "type", "map", "filter", "input", "vars", "dir", "globals"),
        *("iter", "next", "chr", "ord", "pow", "divmod", "format", "hash", "id", "object", "super"),
        *("BaseException", "SystemExit", "MemoryError", "RecursionError", "OSError", "frozenset", "bytes"),
    ],
)
def test_a_name_that_is_neither_bound_nor_provided(name: str) -> None:
    assert refused(f"x = 1\nprint({name})").line == 2
    accepted(f"{name} = 1\nprint({name})")


@pytest.mark.spec("SCR-177")
@pytest.mark.parametrize(
    "script",
    [
        *("__x = 1", "print(__builtins__)", "def __f(): pass", "def f(__a): pass", "lambda __a: 1"),
        *("print(__end=1)", "x = 1\nx.__class__()", "try:\n    pass\nexcept Exception as __e:\n    pass"),
        *("for __i in [1]: pass", "[__i for __i in [1]]", "_＿x = 1"),
    ],
)
def test_no_name_begins_with_two_underscores(script: str) -> None:
    assert refused(script).fault.key in ("name.private", "syntax")


@pytest.mark.spec("SCR-057", "SCR-178")
@pytest.mark.parametrize("base", ["tools", "llm", "json"])
@pytest.mark.parametrize(
    "script",
    [
        "{} = 1",
        "x = {}",
        "print({})",
        "def f({}): pass",
        "def {}(): pass",
        "for {} in [1]: pass",
        "[1 for {} in [1]]",
        "x = {}.names",
        "{}",
        "{}()",
        "{}['a']",
        "try:\n    pass\nexcept Exception as {}:\n    pass",
        "lambda {}: 1",
    ],
)
def test_a_base_is_only_called_through(base: str, script: str) -> None:
    refused(script.replace("{}", base))


@pytest.mark.spec("SCR-178")
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_other_provided_names_may_be_rebound(name: str) -> None:
    accepted(f"{name} = 1\nprint")


@pytest.mark.spec("SCR-179", "SCR-180", "SCR-181", "SCR-188")
@pytest.mark.parametrize(
    "script",
    [
        "import json",
        "a = b = 1\n(c, *d), [e] = (1, 2), [3]\na += 1; a -= 1; a *= 2; a /= 2; a //= 1; a %= 2",
        "a = 1\na &= 1; a |= 1; a ^= 1; a <<= 1; a >>= 1",
        "x = [1, 2]\nx[0] = 3\nx[0:1] = [4]\nx[0] += 1",
        "for i in [1]:\n    continue\nelse:\n    pass\nwhile False:\n    break\nelse:\n    pass",
        "def f(a, b=1, *, c, d=2):\n    return a\nf(1, c=2)\nf(*[1], **{'c': 2})",
        "x: int = 1\ny: Unknown\ndef f(a: Nothing) -> Nowhere:\n    return a",
        "try:\n    raise ValueError\nexcept (KeyError, ValueError) as e:\n    raise e from None\nfinally:\n    pass",
        "assert 1, 'x'\nx = lambda a, b=2: a if a else b",
        "0x1F, 0o17, 0b11, 1_000, 1e5, 'a' 'b', r'\\n', '''x'''",
        "[*[1], *(2,)], {**{}, 'a': 1}, {*[1]}, (1,)",
        "1 < 2 <= 3 != 4 in [4] not in [5]\nnot (1 and 2 or 3)\n-1 + +1 - ~1",
        "x = None\nx is None, x is not True",
        "f'{1}{2!r:>{3}}{4!s}{5=}'",
        "[i for i in [1] if i], {i for i in [1]}, {i: i for i in [1]}, sum(i for i in [1])",
        "print, len, tools.anything(a=1), tools.batch([]), json.loads('1'), llm.classify('a', ['b', 'c'])",
        "store('k', 1)\nload('k')",
    ],
)
def test_what_is_in_the_language(script: str) -> None:
    accepted(script)


@pytest.mark.spec("SCR-225", "SCR-226", "SCR-227", "SCR-228", "SCR-229")
def test_the_methods_are_those_of_the_lists_alone() -> None:
    for method in ANY_METHOD:
        accepted(f"x = 1\nx.{method}()")
    assert sum(len(methods) for methods in METHODS.values()) == 39 + 11 + 10 + 14 + 2


@pytest.mark.spec("SCR-231")
@pytest.mark.parametrize("name", sorted(EXCEPTIONS))
def test_the_provided_exceptions(name: str) -> None:
    accepted(f"try:\n    raise {name}('x')\nexcept {name} as e:\n    print(e, isinstance(e, {name}))")


@pytest.mark.spec("SCR-363")
def test_inputs_is_there_only_when_it_was_given() -> None:
    accepted("print(inputs)", inputs=True)
    assert refused("print(inputs)").fault.key == "name.unknown"


@pytest.mark.spec("SCR-174", "SCR-351")
def test_the_length_of_a_script() -> None:
    accepted("#" * LIMIT)
    assert refused("#" * (LIMIT + 1)).fault.key == "too_long"


@pytest.mark.spec("SCR-175")
@pytest.mark.parametrize(
    "script",
    [
        "(" * 5_000,
        "[" * 199 + "]" * 199,
        "-" * 15_000 + "1",
        "not " * 4_000 + "1",
        "1" + "+1" * 9_000,
        "x = 1\n" + "x" + "[0]" * 5_000,
        "".join(" " * depth + "if 1:\n" for depth in range(99)) + " " * 99 + "pass",
        "lambda: " * 2_000 + "1",
        "f'" + "{f'" * 30,
        "x" + ".a()" * 4_000,
        "if 1:\n\tx = 1\n        y = 2",
        "x = (1,\n",
        "'unfinished",
        "x = 1\x00",
        "x = '\ud800'",
        "return 1",
        "break",
        "def f(a, a): pass",
        "f(a=1, a=2)",
        "1" * 5_000,
    ],
)
def test_a_text_no_parser_should_choke_on(script: str) -> None:
    assert refused(script).line >= 1


@pytest.mark.spec("SCR-172", "SCR-173")
def test_the_first_line_that_is_refused_is_told() -> None:
    assert refused("print('a')\nx = 1\nwith x as y: pass\nclass A: pass").line == 3
    assert refused("print('a')\n\n\n2 ** 2").text("en").startswith("Not run: line 4: ")
    assert refused("print('a')\n2 ** 2").text("vi").startswith("Không chạy: dòng 2: ")
    # The line of a construct that lies over several is the one on which it begins.
    assert refused("x = [\n    1,\n    y,\n]").line == 3


def test_nesting_at_its_edge() -> None:
    terms = MAX_NESTING - 4
    accepted("x = 1" + "+1" * terms)
    assert refused("x = 1" + "+1" * (terms + 3)).fault.key == "nesting"
