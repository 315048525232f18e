"""Servers of the program: set as a whole, connected anew, switched off and on, and watched."""

from __future__ import annotations

import json

from toolway import Hook, ToolwayError, Unavailable, server, tool

from .support import Case
from .tools import calc, greet


class Servers(Case):
    async def test_the_set_is_the_whole_set_and_bad_names_stop_no_other(self) -> None:
        async with self.host(servers={"calc": calc, "stdio": self.stdio()}) as host:
            first = (await host.call("stdio", "pid", check=False)).structured
            result = await host.set_servers(
                {"stdio": self.stdio(), "more": server("more", [greet]), "odd": {"type": "no-such"}}
            )
            self.assertEqual((list(result.added), list(result.removed)), (["more"], ["calc"]))
            self.assertEqual(list(result.errors), ["odd"])
            # What is equal stays connected.
            self.assertEqual((await host.call("stdio", "pid", check=False)).structured, first)
            self.assertEqual(
                (await host.call("more", "greet", {"name": "A"}, check=False)).text, "Hello, A!"
            )
            with self.assertRaises(ToolwayError):
                await host.call("calc", "add", {"a": 1, "b": 2}, check=False)
            self.assertEqual({row.name for row in await host.servers()}, {"stdio", "more"})

    async def test_another_object_behind_an_equal_entry_is_connected_anew(self) -> None:
        def numbered(number: int) -> object:
            @tool("which", "Which object this is", {})
            async def which(given: dict[str, object]) -> str:
                return str(number)

            return server("own", [which])

        async with self.host(servers={"own": numbered(1)}) as host:
            self.assertEqual((await host.call("own", "which", check=False)).text, "1")
            result = await host.set_servers({"own": numbered(2)})
            self.assertEqual((list(result.added), list(result.removed)), ([], []))
            self.assertEqual((await host.call("own", "which", check=False)).text, "2")

    async def test_reconnecting_starts_a_new_process(self) -> None:
        async with self.host(servers={"stdio": self.stdio()}) as host:
            first = (await host.call("stdio", "pid", check=False)).structured
            row = await host.reconnect("stdio")
            self.assertEqual(row.status, "connected")
            self.assertNotEqual((await host.call("stdio", "pid", check=False)).structured, first)

    async def test_a_server_is_switched_off_and_on(self) -> None:
        async with self.host(servers=[calc]) as host:
            self.assertEqual((await host.disable("calc")).status, "disabled")
            with self.assertRaises(Unavailable) as raised:
                await host.call("calc", "add", {"a": 1, "b": 2}, check=False)
            self.assertEqual(raised.exception.state, "disabled")
            await host.enable("calc")
            self.assertEqual(
                (await host.call("calc", "add", {"a": 1, "b": 2}, check=False)).text, "3.0"
            )

    async def test_what_happens_is_told_and_listening_ends_where_wanted_or_with_toolway(
        self,
    ) -> None:
        async with self.host(servers=[calc]) as host:
            await host.tools()
            async with host.events() as events:
                await host.reconnect("calc")
                async for event in events:
                    if event.server == "calc":
                        break
            self.assertEqual([event async for event in events], [])
            others = host.events()
        self.assertEqual(
            [event.kind for event in [one async for one in others] if not event.kind], []
        )

    async def test_what_is_in_effect_can_be_looked_at(self) -> None:
        hooks = [Hook("PreToolUse", lambda given: None, "mcp__calc__*")]
        async with self.host(servers=[calc], hooks=hooks) as host:
            await host.call("calc", "greet", {"name": "Ada"}, check=False)
            calls = (await host.audit(server="calc"))["calls"]
            self.assertEqual([call["tool"] for call in calls], ["greet"])
            self.assertEqual([row["event"] for row in await host.hooks()], ["PreToolUse"])
            self.assertEqual(await host.permissions(), [])
            self.assertEqual((await host.explain("calc"))["name"], "calc")
            self.assertEqual([row["server"] for row in (await host.context())["servers"]], ["calc"])
            self.assertEqual((await host.status())["pid"], host.pid)
            self.assertEqual(await host.questions(), {"questions": []})
            self.assertIsInstance((await host.logs("calc"))["lines"], list)

    async def test_servers_are_read_from_a_file_and_strict_leaves_out_all_others(self) -> None:
        file = self.home / "servers.json"
        file.write_text(json.dumps({"mcpServers": {"stdio": self.stdio()}}), encoding="utf-8")
        config = self.home / ".toolway.json"
        config.write_text("{}", encoding="utf-8")
        async with self.host(servers=file, strict=True) as host:
            self.assertEqual([row.name for row in await host.servers()], ["stdio"])
            self.assertEqual([row.uri for row in await host.resources("stdio")], ["peer://motto"])
            self.assertEqual(
                (await host.read("stdio", "peer://motto")).text, "one host, every server"
            )
            self.assertEqual([row.prompt for row in await host.prompts("stdio")], ["review"])
            prompt = await host.prompt("stdio", "review", {"language": "Rust"})
            self.assertEqual(prompt.messages[0].raw["content"]["text"], "Review this Rust.")
