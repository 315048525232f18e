"""Servers of the program: set as a whole, connected anew, switched off and on, and watched."""

from __future__ import annotations

import json

from toolway import ToolwayError, server

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

    async def test_servers_are_read_from_a_file_and_strict_leaves_out_all_others(self) -> None:
        file = self.home / "servers.json"
        file.write_text(json.dumps({"mcpServers": {"stdio": self.stdio()}}), encoding="utf-8")
        config = self.home / ".toolway.json"
        config.write_text("{}", encoding="utf-8")
        async with self.host(servers=file, strict=True) as host:
            self.assertEqual([row.name for row in await host.servers()], ["stdio"])
