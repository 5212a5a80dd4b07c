"""The closed lists of the language: provided names, bases, exceptions, and methods per type."""

from __future__ import annotations

# SCR-216.
FUNCTIONS = frozenset(
    (
        *("len", "str", "int", "float", "bool", "list", "dict", "set", "tuple", "repr", "range"),
        *("enumerate", "zip", "sorted", "reversed", "min", "max", "sum", "any", "all", "abs", "round"),
        *("isinstance", "print", "store", "load"),
    )
)
BASES = frozenset(("tools", "llm", "json"))
INPUTS = "inputs"
# SCR-218.
TYPES = frozenset(("str", "int", "float", "bool", "list", "dict", "set", "tuple"))
# SCR-231.
EXCEPTIONS = frozenset(
    (
        *("Exception", "ArithmeticError", "ZeroDivisionError", "OverflowError", "LookupError", "KeyError"),
        *("IndexError", "ValueError", "TypeError", "NameError", "AttributeError", "AssertionError"),
        *("RuntimeError", "ToolError"),
    )
)
PROVIDED = FUNCTIONS | EXCEPTIONS

# SCR-225 to SCR-229.
METHODS = {
    "str": frozenset(
        (
            *("capitalize", "casefold", "center", "count", "endswith", "find", "index", "isalnum", "isalpha"),
            *("isascii", "isdecimal", "isdigit", "islower", "isnumeric", "isspace", "istitle", "isupper"),
            *("join", "ljust", "lower", "lstrip", "partition", "removeprefix", "removesuffix", "replace"),
            *("rfind", "rindex", "rjust", "rpartition", "rsplit", "rstrip", "split", "splitlines"),
            *("startswith", "strip", "swapcase", "title", "upper", "zfill"),
        )
    ),
    "list": frozenset(
        (
            *("append", "clear", "copy", "count", "extend", "index", "insert", "pop", "remove"),
            *("reverse", "sort"),
        )
    ),
    "dict": frozenset(
        ("clear", "copy", "get", "items", "keys", "pop", "popitem", "setdefault", "update", "values")
    ),
    "set": frozenset(
        (
            *("add", "clear", "copy", "difference", "discard", "intersection", "isdisjoint", "issubset"),
            *("issuperset", "pop", "remove", "symmetric_difference", "union", "update"),
        )
    ),
    "tuple": frozenset(("count", "index")),
}
ANY_METHOD = frozenset().union(*METHODS.values())

JSON_FUNCTIONS = frozenset(("loads", "dumps"))
LLM_FUNCTIONS = frozenset(("classify", "summarise"))
# Of `tools` itself; no tool may be named so (SCR-041).
TOOLS_FUNCTIONS = frozenset(("names", "search", "describe", "batch"))

# What a refused name is most often wanted for, and so what to write instead.
INSTEAD_OF_NAME = {
    "map": "comprehension",
    "filter": "comprehension",
    "iter": "comprehension",
    "next": "comprehension",
    "open": "files",
    "type": "isinstance",
    "format": "fstring",
    "pow": "power",
    "divmod": "divmod",
    "input": "input",
    "eval": "evaluate",
    "exec": "evaluate",
    "compile": "evaluate",
    "getattr": "attribute",
    "setattr": "attribute",
    "hasattr": "attribute",
    "datetime": "time",
    "time": "time",
    "re": "regex",
    "os": "files",
}
