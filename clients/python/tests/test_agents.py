"""Agents: a part of what the program has."""

from __future__ import annotations

from toolway import ToolwayError, UnknownAgent, server

from .support import Case
from .tools import add, calc, greet


class Agents(Case):
    async def test_an_agent_sees_what_it_was_given_and_ends_with_its_block(self) -> None:
        async with self.host(servers=[calc, server("more", [add, greet])]) as host:
            async with host.agent(
                "reader",
                servers=["more", {"own": self.stdio()}],
                tools=["mcp__more__greet", "mcp__own__*"],
            ) as agent:
                names = {one.name for one in await agent.tools()}
                self.assertEqual(names, {"mcp__more__greet", "mcp__own__pid"})
                result = await agent.call("more", "greet", {"name": "Ada"}, check=False)
                self.assertEqual(result.text, "Hello, Ada!")
                self.assertTrue((await agent.call("own", "pid", check=False)).structured)
                with self.assertRaises(ToolwayError):
                    await agent.call("more", "add", {"a": 1, "b": 2}, check=False)
                self.assertTrue(any("stdio_server" in one for one in self.processes()))
            with self.assertRaises(UnknownAgent):
                await agent.tools()

    async def test_server_objects_belong_to_the_program(self) -> None:
        async with self.host(servers=[calc]) as host:
            with self.assertRaisesRegex(ToolwayError, "lives in this program"):
                host.agent("reader", servers=[{"own": {"type": "sdk"}}])
