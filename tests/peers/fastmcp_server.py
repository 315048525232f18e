"""A FastMCP 4 server for Toolway's tests: Streamable HTTP on 127.0.0.1, both eras.

Usage: fastmcp_server.py PORT   (0 lets the system choose)

Prints `listening on http://127.0.0.1:PORT/mcp` on stdout once the socket accepts
connections, so that a test can wait for that line instead of sleeping. Tools: `add`,
`greet`, `forecast` (structured output), `fail` (a tool error); one resource, one
resource template and one prompt.
"""

import asyncio
import sys
from typing import Annotated

from fastmcp import FastMCP
from fastmcp.exceptions import ToolError
from listening import listen, serve
from pydantic import BaseModel, Field

server = FastMCP(
    name="toolway-fastmcp-peer",
    version="1.0.0",
    instructions="A peer for tests: small tools with answers known in advance.",
)


class Forecast(BaseModel):
    """Structured output with a schema of its own."""

    city: str
    celsius: float
    conditions: list[str]


@server.tool(annotations={"readOnlyHint": True, "idempotentHint": True})
def add(a: Annotated[int, Field(description="first")], b: int) -> int:
    """Add two integers."""
    return a + b


@server.tool
def greet(name: str = "world") -> str:
    """Greet somebody by name."""
    return f"Hello, {name}!"


@server.tool
def forecast(city: str) -> Forecast:
    """A fixed forecast as structured content."""
    return Forecast(city=city, celsius=21.5, conditions=["sunny", "calm"])


@server.tool
def fail(reason: str) -> str:
    """Answer with a tool error, not with a protocol error."""
    raise ToolError(reason)


@server.resource("peer://motto", mime_type="text/plain")
def motto() -> str:
    """A fixed text."""
    return "one host, every server"


@server.resource("peer://square/{number}", mime_type="text/plain")
def square(number: int) -> str:
    """The square of a number, as text."""
    return str(number * number)


@server.prompt
def review(language: str) -> str:
    """Ask for a code review."""
    return f"Review the following {language} code."


async def main(port: int) -> None:
    listener, base = listen(port)
    await serve(server.http_app(path="/mcp"), listener, f"listening on {base}/mcp")


if __name__ == "__main__":
    if len(sys.argv) != 2 or not sys.argv[1].isdigit():
        sys.exit("usage: fastmcp_server.py PORT")
    asyncio.run(main(int(sys.argv[1])))
