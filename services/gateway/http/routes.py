"""Which method a path means, by the ``google.api.http`` annotations of the contracts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import unquote_to_bytes

from google.api import annotations_pb2  # type: ignore[import-untyped]
from google.protobuf.descriptor import FieldDescriptor

from services.common.api import ApiMethod

_VERBS = ("get", "put", "post", "delete", "patch")


@dataclass(frozen=True)
class Binding:
    """One address of one method."""

    method: ApiMethod
    verb: str
    template: str
    # The whole request comes as JSON; otherwise its fields come from the query.
    takes_body: bool
    # The one field of the answer that is shown, or "" for the whole answer.
    response_body: str

    @cached_property
    def segments(self) -> tuple[str, ...]:
        """The parts of the template between slashes."""
        return tuple(self.template.strip("/").split("/"))

    @cached_property
    def path_fields(self) -> tuple[str, ...]:
        """Names of the request's fields that the path carries."""
        return tuple(part[1:-1] for part in self.segments if part.startswith("{"))

    @cached_property
    def shown(self) -> FieldDescriptor | None:
        """The field named by `response_body`."""
        return self.method.response.fields_by_name[self.response_body] if self.response_body else None


@dataclass(frozen=True, slots=True)
class Match:
    """A method found, and what its path says of the request."""

    binding: Binding
    values: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class WrongVerb:
    """The path exists, with other HTTP methods."""

    allowed: tuple[str, ...]


@dataclass(slots=True)
class _Node:
    """A position in the tree of paths. Fixed parts win over fields."""

    fixed: dict[str, _Node] = field(default_factory=dict)
    open: _Node | None = None
    bindings: dict[str, Binding] = field(default_factory=dict)


class RouteTable:
    """All addresses of the API.

    Args:
        methods: What to mount; methods without an annotation and internal ones are left out.

    Raises:
        ValueError: Two methods claim one address, or an annotation uses a form that is not mounted.
    """

    def __init__(self, methods: Iterable[ApiMethod]) -> None:
        self._root = _Node()
        self.bindings: list[Binding] = []
        for method in methods:
            for binding in _bindings(method):
                self._add(binding)
                self.bindings.append(binding)

    def find(self, verb: str, raw_path: bytes) -> Match | WrongVerb | None:
        """Look an address up by its path as it came over the wire.

        A percent-encoded slash stays inside its segment. Returns None for a path that does not
        exist, one with a segment that is no UTF-8 included.
        """
        try:
            segments = [unquote_to_bytes(part).decode("utf-8") for part in raw_path[1:].split(b"/")]
        except UnicodeDecodeError:
            return None
        if any("\0" in segment for segment in segments):
            return None
        allowed: list[str] = []
        for node, values in _walk(self._root, segments, ()):
            if (binding := node.bindings.get(verb)) is not None:
                return Match(binding, dict(zip(binding.path_fields, values, strict=True)))
            allowed.extend(node.bindings)
        return WrongVerb(tuple(sorted(set(allowed)))) if allowed else None

    def _add(self, binding: Binding) -> None:
        node = self._root
        for part in binding.segments:
            if part.startswith("{"):
                if node.open is None:
                    node.open = _Node()
                node = node.open
            else:
                node = node.fixed.setdefault(part, _Node())
        if binding.verb in node.bindings:
            raise ValueError(f"{binding.verb} {binding.template} is claimed twice")
        node.bindings[binding.verb] = binding


def _walk(
    node: _Node, segments: list[str], values: tuple[str, ...]
) -> Iterator[tuple[_Node, tuple[str, ...]]]:
    if not segments:
        if node.bindings:
            yield node, values
        return
    head, rest = segments[0], segments[1:]
    if head in node.fixed:
        yield from _walk(node.fixed[head], rest, values)
    if node.open is not None and head:
        yield from _walk(node.open, rest, (*values, head))


def _bindings(method: ApiMethod) -> Iterator[Binding]:
    options: Any = method.descriptor.GetOptions()
    if method.scope == "internal" or not options.HasExtension(annotations_pb2.http):
        return
    rule = options.Extensions[annotations_pb2.http]
    for one in (rule, *rule.additional_bindings):
        verb = one.WhichOneof("pattern")
        if verb not in _VERBS or one.body not in ("", "*"):
            raise ValueError(f"{method.path}: only plain verbs and a whole body are mounted")
        binding = Binding(
            method=method,
            verb=verb.upper(),
            template=getattr(one, verb),
            takes_body=one.body == "*",
            response_body=one.response_body or rule.response_body,
        )
        fields = method.request.fields_by_name
        for name in binding.path_fields:
            if name not in fields or fields[name].type != FieldDescriptor.TYPE_STRING:
                raise ValueError(f"{method.path}: {name} in the path is no text field of the request")
        if binding.response_body and binding.response_body not in method.response.fields_by_name:
            raise ValueError(f"{method.path}: the answer has no field {binding.response_body}")
        yield binding
