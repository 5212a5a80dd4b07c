"""What the rules need to know of a script beyond the node at hand."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Surroundings:
    """A script's names and the place of each node.

    Attributes:
        nodes: Every node of the tree.
        parents: The node above each node.
        bound: Every name the script binds anywhere.
        inputs: Whether the name `inputs` is provided (SCR-363).
    """

    nodes: Sequence[ast.AST]
    parents: Mapping[ast.AST, ast.AST]
    bound: frozenset[str]
    inputs: bool

    def parent(self, node: ast.AST) -> ast.AST | None:
        """The node above, None above the module."""
        return self.parents.get(node)

    def placed(self, node: ast.AST) -> ast.AST:
        """The node, or the nearest above it, that has a place in the text."""
        while not hasattr(node, "lineno") and node in self.parents:
            node = self.parents[node]
        return node

    def is_called(self, node: ast.expr) -> bool:
        """Whether the node is what a call calls."""
        parent = self.parents.get(node)
        return isinstance(parent, ast.Call) and parent.func is node


def surroundings(tree: ast.Module, *, inputs: bool) -> Surroundings:
    """Look a script over once."""
    nodes: list[ast.AST] = [tree]
    parents: dict[ast.AST, ast.AST] = {}
    for node in nodes:
        for child in ast.iter_child_nodes(node):
            parents[child] = node
            nodes.append(child)
    bound = frozenset(name for node in nodes for name in bound_by(node))
    return Surroundings(nodes, parents, bound, inputs)


def bound_by(node: ast.AST) -> Iterator[str]:
    """The names that a node itself binds."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()):
            yield name
        case ast.FunctionDef(name=name):
            yield name
        case ast.arg(arg=name):
            yield name
        case ast.ExceptHandler(name=str(name)):
            yield name
