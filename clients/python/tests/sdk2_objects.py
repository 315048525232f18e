"""Server objects of version 2 of the official SDK and of FastMCP 4, as they are.

Run in an environment of its own: version 1 of the SDK cannot be beside version 2.
"""

from __future__ import annotations

import asyncio
from typing import Any

from fastmcp import FastMCP
from mcp.server.mcpserver import MCPServer

from .support import Case, eventually


class Objects(Case):
    async def test_a_server_of_version_2_is_called_and_read(self) -> None:
        server = MCPServer("two")
        began, outcomes = asyncio.Event(), []

        @server.tool()
        async def add(a: int, b: int) -> int:
            return a + b

        @server.tool()
        async def sleep() -> str:
            began.set()
            try:
                await asyncio.Event().wait()
            finally:
                outcomes.append("over")
            return ""

        @server.resource("own://motto")
        def motto() -> str:
            return "as it is"

        async with self.host(servers={"two": server, "low": server._lowlevel_server}) as host:
            for name in ("two", "low"):
                result = await host.call(name, "add", {"a": 2, "b": 40}, check=False)
                self.assertEqual(result.structured, {"result": 42})
            self.assertEqual((await host.read("two", "own://motto")).text, "as it is")
            call = asyncio.create_task(host.call("two", "sleep", check=False))
            await began.wait()
            call.cancel()

            async def told() -> bool:
                return outcomes == ["over"]

            await eventually(told)

    async def test_fastmcp_4_begins_and_ends_its_lifespan(self) -> None:
        from contextlib import asynccontextmanager

        life: list[str] = []

        @asynccontextmanager
        async def lifespan(server: Any) -> Any:
            life.append("begun")
            yield {}
            life.append("ended")

        server = FastMCP("four", lifespan=lifespan)

        @server.tool
        async def greet(name: str) -> str:
            return f"Hello, {name}!"

        async with self.host(servers={"four": server}) as host:
            self.assertEqual(
                (await host.call("four", "greet", {"name": "Ada"}, check=False)).text, "Hello, Ada!"
            )
            self.assertEqual(life, ["begun"])
        self.assertEqual(life, ["begun", "ended"])
