"""Server objects of the Claude Agent SDK and of version 1 of the official SDK, as they are."""

from __future__ import annotations

import asyncio
from typing import Any

from claude_agent_sdk import create_sdk_mcp_server
from claude_agent_sdk import tool as sdk_tool
from mcp import types
from mcp.server.fastmcp import Context, FastMCP
from mcp.server.lowlevel import Server
from mcp.server.lowlevel.server import request_ctx
from pydantic import BaseModel
from toolway import Accept, Allow, ElicitationQuestion, PermissionQuestion, Progress

from .support import Case, eventually


@sdk_tool("multiply", "Multiply two numbers", {"a": float, "b": float})
async def multiply(given: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": str(given["a"] * given["b"])}]}


@sdk_tool("order", "Order something", {"what": str})
async def order(given: dict[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": {"pieces": {"type": "integer"}}}
    answer = await request_ctx.get().session.elicit(f"How many {given['what']}?", schema)
    pieces = (answer.content or {}).get("pieces")
    return {"content": [{"type": "text", "text": f"{answer.action}: {pieces} {given['what']}"}]}


class Sure(BaseModel):
    sure: bool


class Objects(Case):
    async def test_a_server_of_the_claude_agent_sdk_is_called_after_a_question_and_asks_one(
        self,
    ) -> None:
        permissions: list[PermissionQuestion] = []
        forms: list[ElicitationQuestion] = []

        async def can_use_tool(question: PermissionQuestion) -> Allow:
            permissions.append(question)
            return Allow()

        async def on_elicitation(question: ElicitationQuestion) -> Accept:
            forms.append(question)
            return Accept({"pieces": 3})

        store = create_sdk_mcp_server("store", "1.0.0", [multiply, order])
        async with self.host(
            servers={"store": store}, can_use_tool=can_use_tool, on_elicitation=on_elicitation
        ) as host:
            self.assertEqual((await host.call("store", "multiply", {"a": 6, "b": 7})).text, "42")
            self.assertEqual(
                (await host.call("store", "order", {"what": "apples"})).text, "accept: 3 apples"
            )
            [row] = await host.servers("store")
            self.assertEqual((row.status, row.provenance), ("connected", "sdk"))
        self.assertEqual(
            [one.name for one in permissions], ["mcp__store__multiply", "mcp__store__order"]
        )
        self.assertEqual([one.message for one in forms], ["How many apples?"])

    async def test_fastmcp_of_version_1_has_tools_progress_forms_resources_and_prompts(
        self,
    ) -> None:
        server = FastMCP("fast")

        @server.tool()
        async def work(ctx: Context[Any, Any, Any]) -> str:
            await ctx.report_progress(1, 2)
            answer = await ctx.elicit("Sure?", Sure)
            return answer.action

        @server.resource("own://motto")
        def motto() -> str:
            return "as it is"

        @server.prompt()
        def review(language: str) -> str:
            return f"Review {language}"

        async with self.host(
            servers={"fast": server}, on_elicitation=lambda _: Accept({"sure": True})
        ) as host:
            told: list[Progress] = []
            result = await host.call("fast", "work", check=False, progress=told.append)
            self.assertEqual((result.text, [one.progress for one in told]), ("accept", [1]))
            self.assertEqual((await host.read("fast", "own://motto")).text, "as it is")
            prompt = await host.prompt("fast", "review", {"language": "Go"})
            self.assertEqual(prompt.messages[0].role, "user")

    async def test_a_low_level_server_hears_that_a_call_is_taken_back(self) -> None:
        server: Server[Any, Any] = Server("low")
        began, outcomes = asyncio.Event(), []

        @server.list_tools()  # type: ignore[no-untyped-call, untyped-decorator]
        async def list_tools() -> list[types.Tool]:
            return [types.Tool(name="sleep", description="", inputSchema={"type": "object"})]

        @server.call_tool()  # type: ignore[untyped-decorator]
        async def call_tool(name: str, arguments: dict[str, Any]) -> list[types.TextContent]:
            began.set()
            try:
                await asyncio.Event().wait()
            finally:
                outcomes.append("over")
            return []

        async with self.host(servers={"low": server}) as host:
            call = asyncio.create_task(host.call("low", "sleep", check=False))
            await began.wait()
            call.cancel()

            async def told() -> bool:
                return outcomes == ["over"]

            await eventually(told)
            row = await host.reconnect("low")
            self.assertEqual(row.status, "connected")

    async def test_what_is_no_server_is_told_at_once(self) -> None:
        with self.assertRaisesRegex(TypeError, "server `odd` is int"):
            self.host(servers={"odd": 7})
