"""Questions that Toolway asks this program."""

from __future__ import annotations

import asyncio

from toolway import (
    Accept,
    Allow,
    Cancel,
    Decline,
    Deny,
    ElicitationQuestion,
    PermissionQuestion,
    Refused,
    server,
)

from .support import Case
from .tools import add, calc, greet


class Permission(Case):
    async def test_the_program_is_asked_and_its_yes_and_no_hold(self) -> None:
        asked: list[PermissionQuestion] = []

        async def can_use_tool(question: PermissionQuestion) -> Allow | Deny:
            asked.append(question)
            return Allow() if question.tool == "add" else Deny("not today")

        async with self.host(servers=[calc], can_use_tool=can_use_tool) as host:
            self.assertEqual((await host.call("calc", "add", {"a": 1, "b": 2})).text, "3.0")
            with self.assertRaisesRegex(Refused, "not today") as raised:
                await host.call("calc", "greet", {"name": "Ada"})
            self.assertEqual(raised.exception.by, "person")
        first = asked[0]
        self.assertEqual(
            (first.server, first.provenance, first.name), ("calc", "sdk", "mcp__calc__add")
        )
        self.assertEqual(first.arguments, {"a": 1, "b": 2})
        self.assertIn("yes", first.choices)

    async def test_arguments_that_the_answer_changes_are_those_that_are_sent(self) -> None:
        async with self.host(
            servers=[calc], can_use_tool=lambda question: Allow(arguments={"name": "Bob"})
        ) as host:
            self.assertEqual(
                (await host.call("calc", "greet", {"name": "Ada"})).text, "Hello, Bob!"
            )

    async def test_a_yes_for_the_session_is_not_asked_for_again(self) -> None:
        asked = []

        def can_use_tool(question: PermissionQuestion) -> Allow:
            asked.append(question.tool)
            return Allow(remember="session")

        async with self.host(servers=[calc], can_use_tool=can_use_tool) as host:
            for name in ("Ada", "Bob"):
                await host.call("calc", "greet", {"name": name})
        self.assertEqual(asked, ["greet"])

    async def test_nobody_is_asked_about_a_call_that_the_program_vouches_for(self) -> None:
        async with self.host(servers=[calc], can_use_tool=lambda question: Deny()) as host:
            result = await host.call("calc", "greet", {"name": "A"}, check=False)
            self.assertEqual(result.text, "Hello, A!")
            with self.assertRaises(Refused):
                await host.call("calc", "greet", {"name": "A"})

    async def test_a_callback_that_fails_refuses_the_call_and_says_why(self) -> None:
        def can_use_tool(question: PermissionQuestion) -> Allow:
            raise ValueError("cannot decide")

        async with self.host(servers=[calc], can_use_tool=can_use_tool) as host:
            with (
                self.assertLogs("toolway", "ERROR"),
                self.assertRaisesRegex(Refused, "can_use_tool failed: ValueError: cannot decide"),
            ):
                await host.call("calc", "add", {"a": 1, "b": 2})

    async def test_a_slow_callback_holds_up_its_own_call_alone(self) -> None:
        decided = asyncio.Event()

        async def can_use_tool(question: PermissionQuestion) -> Allow:
            if question.tool == "add":
                await decided.wait()
            return Allow()

        async with self.host(servers=[calc], can_use_tool=can_use_tool) as host:
            slow = asyncio.create_task(host.call("calc", "add", {"a": 1, "b": 2}))
            self.assertEqual((await host.call("calc", "greet", {"name": "A"})).text, "Hello, A!")
            self.assertFalse(slow.done())
            decided.set()
            self.assertEqual((await slow).text, "3.0")

    async def test_a_question_that_is_not_wanted_any_more_is_taken_back(self) -> None:
        asked, taken_back = asyncio.Event(), asyncio.Event()

        async def can_use_tool(question: PermissionQuestion) -> Allow:
            asked.set()
            try:
                await asyncio.Event().wait()
            finally:
                taken_back.set()
            return Allow()

        async with self.host(servers=[calc], can_use_tool=can_use_tool) as host:
            call = asyncio.create_task(host.call("calc", "add", {"a": 1, "b": 2}))
            await asked.wait()
            call.cancel()
            await asyncio.wait_for(taken_back.wait(), 30)

    async def test_policies_of_an_entry_ask_and_deny(self) -> None:
        asked = []

        def can_use_tool(question: PermissionQuestion) -> Allow:
            asked.append(question.tool)
            return Allow()

        own = server("own", [add, greet], policies={"add": "always_allow", "greet": "always_deny"})
        async with self.host(servers=[own], can_use_tool=can_use_tool) as host:
            self.assertEqual((await host.call("own", "add", {"a": 1, "b": 2})).text, "3.0")
            with self.assertRaises(Refused):
                await host.call("own", "greet", {"name": "A"})
        self.assertEqual(asked, [])


class Elicitation(Case):
    async def confirm(self, on_elicitation: object) -> str:
        async with self.host(servers=[calc], on_elicitation=on_elicitation) as host:
            return (await host.call("calc", "confirm", {"what": "go"}, check=False)).text

    async def test_a_form_is_answered_by_the_program(self) -> None:
        asked: list[ElicitationQuestion] = []

        async def on_elicitation(question: ElicitationQuestion) -> Accept:
            asked.append(question)
            return Accept({"sure": True})

        self.assertEqual(await self.confirm(on_elicitation), "go: {'sure': True}")
        self.assertEqual(
            (asked[0].server, asked[0].mode, asked[0].message), ("calc", "form", "Really go?")
        )
        self.assertIn("sure", (asked[0].schema or {})["properties"])

    async def test_declining_and_cancelling_are_told_apart(self) -> None:
        self.assertEqual(await self.confirm(lambda _: Decline()), "not go: Decline")
        self.assertEqual(await self.confirm(lambda _: Cancel()), "not go: Cancel")

    async def test_a_callback_that_fails_cancels(self) -> None:
        with self.assertLogs("toolway", "ERROR"):
            self.assertEqual(await self.confirm(lambda _: 1 / 0), "not go: Cancel")
