"""A server on version 1 of the official Python SDK, for Toolway's tests: legacy era only.

Usage: sdk1_server.py http|sse|ws PORT   (port 0 lets the system choose)

Serves Streamable HTTP with sessions, HTTP+SSE, or WebSocket on 127.0.0.1 and prints
`listening on URL` on stdout once the socket accepts connections. Tools: `echo`, `add`
(structured output), `count` (progress before each of its steps, then waits between them),
`process` (which process answers, so that a test can tell a restart), `fail` (a tool error).
"""

import contextlib
import os
import sys
import warnings

import anyio
import mcp.types as types
from listening import listen, serve
from mcp.server.lowlevel import Server
from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Mount, Route, WebSocketRoute

server = Server("toolway-sdk1-peer", version="1.0.0", instructions="A peer for tests.")


def tool(name: str, description: str, **properties: str) -> types.Tool:
    schema = {
        "type": "object",
        "properties": {key: {"type": kind} for key, kind in properties.items()},
        "required": list(properties),
    }
    return types.Tool(name=name, description=description, inputSchema=schema)


@server.list_tools()
async def list_tools() -> list[types.Tool]:
    add = tool("add", "Add two integers.", a="integer", b="integer")
    add.outputSchema = {
        "type": "object",
        "properties": {"sum": {"type": "integer"}},
        "required": ["sum"],
    }
    return [
        tool("echo", "Say it again.", message="string"),
        add,
        tool("count", "Count slowly.", steps="integer", milliseconds="integer"),
        tool("process", "The process that answers."),
        tool("fail", "Answer with a tool error.", reason="string"),
    ]


@server.call_tool()
async def call_tool(name: str, arguments: dict):
    match name:
        case "echo":
            return [types.TextContent(type="text", text=arguments["message"])]
        case "add":
            return {"sum": arguments["a"] + arguments["b"]}
        case "count":
            return await count(arguments["steps"], arguments["milliseconds"])
        case "process":
            return [types.TextContent(type="text", text=str(os.getpid()))]
        case "fail":
            raise ValueError(arguments["reason"])
    raise ValueError(f"unknown tool {name}")


async def count(steps: int, milliseconds: int) -> list[types.TextContent]:
    context = server.request_context
    token = context.meta.progressToken if context.meta else None
    for step in range(1, steps + 1):
        if token is not None:
            await context.session.send_progress_notification(
                token,
                step,
                total=steps,
                message=f"step {step}",
                # Without it the notification leaves on the GET stream, which nobody need have.
                related_request_id=str(context.request_id),
            )
        await anyio.sleep(milliseconds / 1000)
    return [types.TextContent(type="text", text=f"counted to {steps}")]


def http_app() -> Starlette:
    manager = StreamableHTTPSessionManager(app=server)

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette):
        async with manager.run():
            yield

    return Starlette(routes=[Mount("/mcp", app=manager.handle_request)], lifespan=lifespan)


def sse_app() -> Starlette:
    transport = SseServerTransport("/messages/")

    async def stream(request):
        async with transport.connect_sse(
            request.scope, request.receive, request._send
        ) as (read, write):
            await server.run(read, write, server.create_initialization_options())
        return Response()

    routes = [Route("/sse", stream), Mount("/messages/", app=transport.handle_post_message)]
    return Starlette(routes=routes)


def ws_app() -> Starlette:
    # Deprecated and gone in version 2, which is why this peer is on version 1.
    warnings.simplefilter("ignore", DeprecationWarning)
    from mcp.server.websocket import websocket_server

    async def talk(websocket):
        async with websocket_server(
            websocket.scope, websocket.receive, websocket.send
        ) as (read, write):
            await server.run(read, write, server.create_initialization_options())

    return Starlette(routes=[WebSocketRoute("/ws", talk)])


TRANSPORTS = {
    "http": (http_app, "http://127.0.0.1:{}/mcp/"),
    "sse": (sse_app, "http://127.0.0.1:{}/sse"),
    "ws": (ws_app, "ws://127.0.0.1:{}/ws"),
}


def main(transport: str, port: int) -> None:
    app, url = TRANSPORTS[transport]
    listener, _ = listen(port)
    url = url.format(listener.getsockname()[1])
    anyio.run(serve, app(), listener, f"listening on {url}")


if __name__ == "__main__":
    words = sys.argv[1:]
    if len(words) != 2 or words[0] not in TRANSPORTS or not words[1].isdigit():
        sys.exit("usage: sdk1_server.py http|sse|ws PORT")
    main(words[0], int(words[1]))
