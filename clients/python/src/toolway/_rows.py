"""What Toolway tells about servers, tools and events, one value for each row.

Every value carries the row as it came in ``raw``: members that are not known here are there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ._results import Json, mapping, rows, text_of


@dataclass(frozen=True)
class Tool:
    """A tool that can be called."""

    name: str
    server: str
    tool: str
    title: str | None
    description: str | None
    input_schema: Mapping[str, Json] = field(repr=False)
    output_schema: Mapping[str, Json] | None = field(repr=False)
    annotations: Mapping[str, Json] = field(repr=False)
    deferred: bool
    provenance: str | None
    raw: Mapping[str, Json] = field(repr=False)


@dataclass(frozen=True)
class ServerStatus:
    """A server and where it stands.

    ``status`` is ``pending``, ``connected``, ``failed``, ``needs-auth`` or ``disabled``;
    ``provenance`` says where the definition came from (``sdk``, ``dynamic``, ``user``, ``project``,
    and words that later versions bring).
    """

    name: str
    status: str
    scope: str | None
    source: Mapping[str, Json] | None
    provenance: str | None
    transport: str | None
    era: str | None
    protocol_version: str | None
    server_info: Mapping[str, Json] | None
    error: str | None
    reason: str | None
    resting: bool
    instructions: str | None
    tool_count: int | None
    tools: Sequence[Tool] | None = field(repr=False)
    raw: Mapping[str, Json] = field(repr=False)


@dataclass(frozen=True)
class SetResult:
    """What setting the servers of this program came to."""

    added: Sequence[str]
    removed: Sequence[str]
    errors: Mapping[str, str]
    raw: Mapping[str, Json] = field(repr=False)


@dataclass(frozen=True)
class Login:
    """Where a login stands: a page to visit (``url``, with ``code`` for another device), or done."""

    url: str | None
    code: str | None
    logged_in: bool
    raw: Mapping[str, Json] = field(repr=False)


@dataclass(frozen=True)
class Approval:
    """What a yes would cover. ``digest`` is what :meth:`Toolway.approve` wants to see."""

    definition: Json
    digest: str
    source: Json
    variables: Json
    raw: Mapping[str, Json] = field(repr=False)


@dataclass(frozen=True)
class Event:
    """Something that happened: ``kind`` is ``state``, ``tools-changed`` and so on."""

    kind: str
    server: str | None
    raw: Mapping[str, Json]


@dataclass(frozen=True)
class Resource:
    """A resource that a server offers."""

    uri: str
    server: str | None
    name: str | None
    description: str | None
    mime_type: str | None
    raw: Mapping[str, Json] = field(repr=False)


@dataclass(frozen=True)
class Prompt:
    """A prompt of a server: ``name`` as models see it, ``prompt`` as its server spells it."""

    name: str
    server: str | None
    prompt: str
    description: str | None
    arguments: Sequence[Mapping[str, Json]]
    raw: Mapping[str, Json] = field(repr=False)


def read_tool(raw: Mapping[str, Json]) -> Tool:
    """A tool row."""
    output = raw.get("outputSchema")
    return Tool(
        name=str(raw.get("name", "")),
        server=str(raw.get("server", "")),
        tool=str(raw.get("tool", "")),
        title=text_of(raw.get("title")),
        description=text_of(raw.get("description")),
        input_schema=mapping(raw.get("inputSchema")),
        output_schema=output if isinstance(output, Mapping) else None,
        annotations=mapping(raw.get("annotations")),
        deferred=raw.get("deferred") is True,
        provenance=text_of(raw.get("provenance")),
        raw=raw,
    )


def read_server(raw: Mapping[str, Json]) -> ServerStatus:
    """A server row."""
    source = raw.get("source")
    info = raw.get("serverInfo")
    count = raw.get("toolCount")
    return ServerStatus(
        name=str(raw.get("name", "")),
        status=str(raw.get("status", "")),
        scope=text_of(raw.get("scope")),
        source=source if isinstance(source, Mapping) else None,
        provenance=text_of(raw.get("provenance")),
        transport=text_of(raw.get("transport")),
        era=text_of(raw.get("era")),
        protocol_version=text_of(raw.get("protocolVersion")),
        server_info=info if isinstance(info, Mapping) else None,
        error=text_of(raw.get("error")),
        reason=text_of(raw.get("reason")),
        resting=raw.get("resting") is True,
        instructions=text_of(raw.get("instructions")),
        tool_count=count if isinstance(count, int) else None,
        tools=[read_tool(row) for row in rows(raw["tools"])] if raw.get("tools") else None,
        raw=raw,
    )


def read_set(raw: Mapping[str, Json]) -> SetResult:
    """The answer to a set of servers."""
    return SetResult(
        added=[str(name) for name in raw.get("added") or []],
        removed=[str(name) for name in raw.get("removed") or []],
        errors={str(name): str(words) for name, words in mapping(raw.get("errors")).items()},
        raw=raw,
    )


def read_login(raw: Mapping[str, Json]) -> Login:
    """The answer to a login."""
    return Login(
        text_of(raw.get("url")), text_of(raw.get("code")), raw.get("loggedIn") is True, raw
    )


def read_approval(raw: Mapping[str, Json]) -> Approval:
    """What a yes would cover."""
    return Approval(
        raw.get("definition"),
        str(raw.get("digest", "")),
        raw.get("source"),
        raw.get("variables"),
        raw,
    )


def read_event(raw: Mapping[str, Json]) -> Event:
    """An event."""
    return Event(str(raw.get("event", "")), text_of(raw.get("server")), raw)


def read_resource_row(raw: Mapping[str, Json]) -> Resource:
    """A row of a list of resources."""
    return Resource(
        uri=str(raw.get("uri", "")),
        server=text_of(raw.get("server")),
        name=text_of(raw.get("name")),
        description=text_of(raw.get("description")),
        mime_type=text_of(raw.get("mimeType")),
        raw=raw,
    )


def read_prompt_row(raw: Mapping[str, Json]) -> Prompt:
    """A row of a list of prompts."""
    return Prompt(
        name=str(raw.get("name", "")),
        server=text_of(raw.get("server")),
        prompt=str(raw.get("prompt") or raw.get("name", "")),
        description=text_of(raw.get("description")),
        arguments=rows(raw.get("arguments")),
        raw=raw,
    )
