"""Agents: a part of what the program has."""

from __future__ import annotations

from toolway import ToolwayError

from .support import Case
from .tools import calc


class Agents(Case):
    async def test_server_objects_belong_to_the_program(self) -> None:
        async with self.host(servers=[calc]) as host:
            with self.assertRaisesRegex(ToolwayError, "lives in this program"):
                host.agent("reader", servers=[{"own": {"type": "sdk"}}])
