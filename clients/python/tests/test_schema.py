"""Schemas from signatures."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import unittest
from typing import Annotated, Any, Literal, Optional, TypedDict

from toolway import Context, server, tool
from toolway._schema import of_type, read_docstring, value


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    x: float
    y: float = 0


class Row(TypedDict):
    name: str


class Schemas(unittest.TestCase):
    def test_types_have_the_schemas_that_json_has_for_them(self) -> None:
        for kind, wanted in [
            (int, {"type": "integer"}),
            (list[str], {"type": "array", "items": {"type": "string"}}),
            (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
            (Literal["a", "b"], {"enum": ["a", "b"]}),
            (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
            (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
            (Annotated[str, "a name"], {"type": "string", "description": "a name"}),
            (Annotated[int, {"minimum": 1}], {"type": "integer", "minimum": 1}),
            (Colour, {"enum": ["red", "blue"]}),
            (datetime.date, {"type": "string", "format": "date"}),
            (Any, {}),
        ]:
            with self.subTest(kind=kind):
                self.assertEqual(of_type(kind), wanted)
        self.assertEqual(of_type(Point)["required"], ["x"])
        self.assertEqual(of_type(Row)["properties"], {"name": {"type": "string"}})

    def test_values_come_as_the_function_expects_them(self) -> None:
        self.assertEqual(value(Colour, "red"), Colour.RED)
        self.assertEqual(value(Point, {"x": 1}), Point(1.0, 0))
        self.assertEqual(value(list[Point], [{"x": 1, "y": 2}]), [Point(1, 2)])
        self.assertEqual(value(Optional[Point], None), None)
        self.assertEqual(value(datetime.date, "2026-01-31"), datetime.date(2026, 1, 31))
        self.assertEqual(value(set[int], [1, 1]), {1})

    def test_a_docstring_says_what_the_tool_and_its_arguments_are(self) -> None:
        text = "Find things.\n\nIn two lines.\n\nArgs:\n    what (str): The\n        thing.\n\nReturns:\n    It.\n"
        self.assertEqual(
            read_docstring(text), ("Find things.\n\nIn two lines.", {"what": "The thing."})
        )
        self.assertEqual(
            read_docstring("Find.\n\n:param what: The thing."), ("Find.", {"what": "The thing."})
        )

    def test_what_has_no_schema_is_told_where_the_tool_is_defined(self) -> None:
        def odd(what: complex) -> str:
            return ""

        with self.assertRaisesRegex(TypeError, "parameter `what` of `odd`: no schema"):
            tool(odd)
        with self.assertRaisesRegex(TypeError, "come by name"):
            tool(lambda *things: "")

    def test_a_tool_can_still_be_called_as_the_function_that_it_is(self) -> None:
        @tool(name="double", annotations={"readOnlyHint": True})
        def twice(number: int, ctx: Context | None = None) -> int:
            """Double it."""
            return number * 2

        self.assertEqual(twice(21), 42)
        self.assertEqual(twice.to_wire()["annotations"], {"readOnlyHint": True})

    def test_two_tools_of_a_name_are_refused(self) -> None:
        @tool
        def one() -> str:
            """One."""
            return ""

        with self.assertRaisesRegex(ValueError, "two tools `one`"):
            server("own", [one, one])
