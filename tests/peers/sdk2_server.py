"""A server on version 2 of the official Python SDK, for Toolway's tests: both eras.

Usage: sdk2_server.py PORT   (0 lets the system choose)

Serves Streamable HTTP on 127.0.0.1 and prints `listening on URL` on stdout once the socket
accepts connections. Tools: `echo`, `add` (structured output), `count` (progress before each of
its steps, then waits between them), `process` (which process answers), `fail` (a tool error).
"""

import os
import sys

import anyio
from listening import listen, serve
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel

server = MCPServer(name="toolway-sdk2-peer", version="1.0.0", instructions="A peer for tests.")


class Sum(BaseModel):
    """Structured output with a schema of its own."""

    sum: int


@server.tool(structured_output=False)
def echo(message: str) -> str:
    """Say it again."""
    return message


@server.tool()
def add(a: int, b: int) -> Sum:
    """Add two integers."""
    return Sum(sum=a + b)


@server.tool(structured_output=False)
async def count(steps: int, milliseconds: int, context: Context) -> str:
    """Count slowly."""
    for step in range(1, steps + 1):
        await context.report_progress(step, steps, f"step {step}")
        await anyio.sleep(milliseconds / 1000)
    return f"counted to {steps}"


@server.tool(structured_output=False)
def process() -> str:
    """The process that answers."""
    return str(os.getpid())


@server.tool(structured_output=False)
def fail(reason: str) -> str:
    """Answer with a tool error, not with a protocol error."""
    raise ToolError(reason)


def main(port: int) -> None:
    listener, base = listen(port)
    anyio.run(serve, server.streamable_http_app(), listener, f"listening on {base}/mcp")


if __name__ == "__main__":
    if len(sys.argv) != 2 or not sys.argv[1].isdigit():
        sys.exit("usage: sdk2_server.py PORT")
    main(int(sys.argv[1]))
