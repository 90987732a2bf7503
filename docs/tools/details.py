"""What the page of the Python API takes from the code beside docstrings.

In swarmbo an attribute is described by the comment behind it, with its unit:
`width: float  # m, along x`; the page shows what the comment says. And where the
default of a parameter is a constant, the page shows its value instead of its name.
"""

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import griffe

COMMENT = re.compile(r"\s#\s+(.*)$")


class Details(griffe.Extension):
    """Comments as descriptions of attributes, and values of defaults."""

    def on_class_members(
        self, *, node: ast.AST | griffe.ObjectNode, cls: griffe.Class, **rest: Any
    ) -> None:
        """Add a list of the attributes that have comments to a class's docstring."""
        attributes = [
            member
            for name, member in cls.members.items()
            if isinstance(member, griffe.Attribute)
            and "instance-attribute" in member.labels  # not a property, which has a docstring
            and not name.startswith("_")
        ]
        described = [
            griffe.DocstringAttribute(each.name, description=comment, annotation=each.annotation)
            for each in attributes
            if (comment := _comment(each))
        ]
        if described and cls.docstring is not None:
            cls.docstring.parsed.append(griffe.DocstringSectionAttributes(described))

    def on_function_instance(
        self, *, node: ast.AST | griffe.ObjectNode, func: griffe.Function, **rest: Any
    ) -> None:
        """Show the values of defaults that are plain constants."""
        named = [each for each in func.parameters if isinstance(each.default, griffe.ExprName)]
        if not named:
            return
        parameters = inspect.signature(griffe.dynamic_import(func.path)).parameters
        for each in named:
            value = parameters[each.name].default
            if isinstance(value, int | float | str):
                each.default = repr(value)


def _comment(attribute: griffe.Attribute) -> str:
    """The comment at the end of an attribute's line."""
    assert attribute.endlineno is not None
    assert isinstance(attribute.filepath, Path)
    lines = attribute.lines_collection[attribute.filepath]
    comment = COMMENT.search(lines[attribute.endlineno - 1])
    return "" if comment is None else comment[1]
