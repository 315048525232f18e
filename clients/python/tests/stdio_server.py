"""A server that is a program, on version 1 of the official SDK: what it says about itself can be
looked at, and it ends only when it is told to."""

from __future__ import annotations

import os

from mcp.server.fastmcp import FastMCP

server = FastMCP("stdio")


@server.tool()
async def pid() -> int:
    """The id of this process."""
    return os.getpid()


@server.resource("peer://motto")
def motto() -> str:
    """A motto."""
    return "one host, every server"


@server.prompt()
def review(language: str) -> str:
    """Review code."""
    return f"Review this {language}."


if __name__ == "__main__":
    server.run()
