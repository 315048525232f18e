"""What calls and reads give back, with what came over the wire beside it.

Owns the kinds of content. A kind or a member that is not known here is in ``raw``.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Union

from ._errors import ProtocolError, ToolError

Json = Any


@dataclass(frozen=True)
class TextContent:
    """Text."""

    text: str
    raw: Mapping[str, Json] = field(repr=False, default_factory=dict)


@dataclass(frozen=True)
class BinaryContent:
    """An image or a sound: ``kind`` is ``image`` or ``audio``."""

    kind: str
    data: bytes = field(repr=False)
    mime_type: str | None
    raw: Mapping[str, Json] = field(repr=False, default_factory=dict)


@dataclass(frozen=True)
class LinkContent:
    """A resource that can be read under ``uri``."""

    uri: str
    name: str | None
    mime_type: str | None
    raw: Mapping[str, Json] = field(repr=False, default_factory=dict)


@dataclass(frozen=True)
class ResourceContent:
    """A resource itself: ``text`` or ``data``."""

    uri: str
    text: str | None
    data: bytes | None = field(repr=False)
    mime_type: str | None
    raw: Mapping[str, Json] = field(repr=False, default_factory=dict)


@dataclass(frozen=True)
class OtherContent:
    """A kind that this package does not know."""

    kind: str
    raw: Mapping[str, Json]


Content = Union[TextContent, BinaryContent, LinkContent, ResourceContent, OtherContent]


@dataclass(frozen=True)
class CallResult:
    """What a tool answered.

    A tool that says of itself that it failed is an answer too: ``is_error`` is set, and
    :meth:`raise_for_error` makes an exception of it.
    """

    content: Sequence[Content]
    structured: Json
    is_error: bool
    raw: Mapping[str, Json] = field(repr=False)

    @property
    def text(self) -> str:
        """All text of the content, one block after the other."""
        parts = []
        for block in self.content:
            if isinstance(block, (TextContent, ResourceContent)) and block.text is not None:
                parts.append(block.text)
        return "\n".join(parts)

    @property
    def meta(self) -> Mapping[str, Json]:
        """The result's ``_meta``."""
        return mapping(self.raw.get("_meta"))

    def raise_for_error(self) -> CallResult:
        """This result, or :class:`ToolError` with its text where the tool failed."""
        if self.is_error:
            raise ToolError(self.text or "the tool failed without a word", data=dict(self.raw))
        return self


@dataclass(frozen=True)
class ReadResult:
    """The contents of a resource."""

    contents: Sequence[ResourceContent]
    raw: Mapping[str, Json] = field(repr=False)

    @property
    def text(self) -> str:
        """All text of it."""
        return "\n".join(part.text for part in self.contents if part.text is not None)


@dataclass(frozen=True)
class PromptMessage:
    """One message of a prompt."""

    role: str
    content: Content
    raw: Mapping[str, Json] = field(repr=False)


@dataclass(frozen=True)
class PromptResult:
    """A prompt with its arguments filled in."""

    description: str | None
    messages: Sequence[PromptMessage]
    raw: Mapping[str, Json] = field(repr=False)


@dataclass(frozen=True)
class Progress:
    """How far a call has come."""

    progress: float
    total: float | None
    message: str | None
    raw: Mapping[str, Json] = field(repr=False)


def mapping(value: object) -> Mapping[str, Json]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def rows(value: object) -> list[Mapping[str, Json]]:
    """The objects of a list."""
    return [row for row in value if isinstance(row, Mapping)] if isinstance(value, list) else []


def text_of(value: object) -> str | None:
    """The value if it is text."""
    return value if isinstance(value, str) else None


def expect(value: object, method: str) -> Mapping[str, Json]:
    """The answer of a method, which is an object."""
    if not isinstance(value, Mapping):
        raise ProtocolError(f"the answer to `{method}` is no object")
    return value


def _bytes(value: object) -> bytes:
    try:
        return base64.b64decode(value) if isinstance(value, str) else b""
    except ValueError:
        return b""


def read_content(raw: Mapping[str, Json]) -> Content:
    """One block of content."""
    kind = str(raw.get("type"))
    mime = text_of(raw.get("mimeType"))
    if kind == "text":
        return TextContent(str(raw.get("text", "")), raw)
    if kind in ("image", "audio"):
        return BinaryContent(kind, _bytes(raw.get("data")), mime, raw)
    if kind == "resource_link":
        return LinkContent(str(raw.get("uri", "")), text_of(raw.get("name")), mime, raw)
    if kind == "resource":
        return read_resource(mapping(raw.get("resource")))
    return OtherContent(kind, raw)


def read_resource(raw: Mapping[str, Json]) -> ResourceContent:
    """The contents of a resource, or a part of them."""
    return ResourceContent(
        uri=str(raw.get("uri", "")),
        text=text_of(raw.get("text")),
        data=_bytes(raw["blob"]) if "blob" in raw else None,
        mime_type=text_of(raw.get("mimeType")),
        raw=raw,
    )


def read_call(raw: Mapping[str, Json]) -> CallResult:
    """The result of a call."""
    return CallResult(
        content=[read_content(block) for block in rows(raw.get("content"))],
        structured=raw.get("structuredContent"),
        is_error=raw.get("isError") is True,
        raw=raw,
    )


def read_read(raw: Mapping[str, Json]) -> ReadResult:
    """The result of a read."""
    return ReadResult([read_resource(part) for part in rows(raw.get("contents"))], raw)


def read_prompt(raw: Mapping[str, Json]) -> PromptResult:
    """A prompt."""
    return PromptResult(
        description=text_of(raw.get("description")),
        messages=[
            PromptMessage(str(row.get("role")), read_content(mapping(row.get("content"))), row)
            for row in rows(raw.get("messages"))
        ],
        raw=raw,
    )


def read_progress(raw: Mapping[str, Json]) -> Progress:
    """A report of progress."""

    def number(value: object) -> float | None:
        return value if isinstance(value, (int, float)) else None

    return Progress(
        progress=number(raw.get("progress")) or 0,
        total=number(raw.get("total")),
        message=text_of(raw.get("message")),
        raw=raw,
    )
