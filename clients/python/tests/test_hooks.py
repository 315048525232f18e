"""Hooks that are functions of this program."""

from __future__ import annotations

from typing import Any

from toolway import Hook, HookInput, HookReply, Refused

from .support import Case
from .tools import calc


class Hooks(Case):
    async def greet(self, *hooks: Hook) -> str:
        async with self.host(servers=[calc], hooks=hooks) as host:
            return (await host.call("calc", "greet", {"name": "Ada"}, check=False)).text

    async def test_a_hook_sees_the_call_and_may_change_its_arguments(self) -> None:
        seen: list[HookInput] = []

        async def rename(given: HookInput) -> HookReply:
            seen.append(given)
            return HookReply(arguments={"name": "Bob"})

        self.assertEqual(
            await self.greet(Hook("PreToolUse", rename, "mcp__calc__*")), "Hello, Bob!"
        )
        self.assertEqual(
            (seen[0].event, seen[0].server, seen[0].tool), ("PreToolUse", "calc", "greet")
        )
        self.assertEqual(seen[0].arguments, {"name": "Ada"})

    async def test_a_hook_denies_in_the_words_of_hook_programs_too(self) -> None:
        def deny(given: HookInput) -> dict[str, Any]:
            return {
                "hookSpecificOutput": {
                    "permissionDecision": "deny",
                    "permissionDecisionReason": "no",
                }
            }

        with self.assertRaisesRegex(Refused, "no") as raised:
            await self.greet(Hook("PreToolUse", deny))
        self.assertEqual(raised.exception.by, "hook")

    async def test_a_hook_that_fails_or_takes_too_long_refuses_the_call(self) -> None:
        import asyncio

        def fail(given: HookInput) -> None:
            raise ValueError("cannot judge")

        with self.assertLogs("toolway", "ERROR"), self.assertRaisesRegex(Refused, "cannot judge"):
            await self.greet(Hook("PreToolUse", fail))

        async def late(given: HookInput) -> None:
            await asyncio.Event().wait()

        with self.assertRaises(Refused):
            await self.greet(Hook("PreToolUse", late, timeout=0.2))

    async def test_hooks_of_other_tools_are_not_asked(self) -> None:
        def deny(given: HookInput) -> HookReply:
            return HookReply(permission="deny")

        self.assertEqual(await self.greet(Hook("PreToolUse", deny, "mcp__other__*")), "Hello, Ada!")
