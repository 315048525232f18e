"""Calls: their results, their errors, and how they are taken back."""

from __future__ import annotations

import asyncio

from toolway import (
    Call,
    CallResult,
    InvalidRequest,
    Progress,
    TimedOut,
    ToolError,
    UnknownServer,
    UnknownTool,
    server,
)

from .support import Case, eventually
from .tools import Sleeper, calc


class Calls(Case):
    async def test_tools_of_this_program_are_listed_with_schemas_from_signatures(self) -> None:
        async with self.host(servers=[calc]) as host:
            tools = {one.tool: one for one in await host.tools()}
            add = tools["add"]
            self.assertEqual(add.name, "mcp__calc__add")
            self.assertEqual((add.server, add.provenance), ("calc", "sdk"))
            self.assertEqual(add.description, "Add two numbers.")
            self.assertEqual(
                add.input_schema["properties"],
                {
                    "a": {"type": "number", "description": "The first."},
                    "b": {"type": "number", "description": "The second."},
                },
            )
            self.assertEqual(len(tools), 7)
            self.assertEqual([one.tool for one in await host.tools(search="add", limit=1)], ["add"])

    async def test_a_result_is_typed_and_has_the_raw_one_beside_it(self) -> None:
        async with self.host(servers=[calc]) as host:
            result = await host.call("calc", "add", {"a": 2, "b": 40}, check=False)
            self.assertEqual(result.text, "42.0")
            self.assertEqual(result.structured, {"result": 42.0})
            self.assertEqual(result.raw["content"], [{"type": "text", "text": "42.0"}])
            named = await host.call_name("mcp__calc__greet", {"name": "Ada"}, check=False)
            self.assertEqual(named.text, "Hello, Ada!")

    async def test_progress_comes_in_order_and_before_the_result(self) -> None:
        async with self.host(servers=[calc]) as host:
            told: list[Progress] = []
            result = await host.call(
                "calc", "count", {"steps": 5}, check=False, progress=told.append
            )
            self.assertEqual(result.text, "counted to 5")
            self.assertEqual([one.progress for one in told], [1, 2, 3, 4, 5])
            self.assertEqual((told[0].total, told[0].message), (5, "step 1"))
            threaded = await host.call(
                "calc", "threaded", check=False, progress=lambda one: told.append(one)
            )
            self.assertEqual((threaded.text, len(told)), ("done in a thread", 6))

    async def test_a_progress_callback_that_fails_does_not_harm_the_call(self) -> None:
        async with self.host(servers=[calc]) as host:

            def stumble(progress: Progress) -> None:
                raise ValueError("not today")

            with self.assertLogs("toolway", "ERROR"):
                result = await host.call(
                    "calc", "count", {"steps": 1}, check=False, progress=stumble
                )
            self.assertEqual(result.text, "counted to 1")

    async def test_a_tool_that_fails_is_a_result_and_an_exception_only_where_wanted(self) -> None:
        async with self.host(servers=[calc]) as host:
            failed = await host.call("calc", "fail", {"reason": "no luck"}, check=False)
            self.assertTrue(failed.is_error)
            with self.assertRaisesRegex(ToolError, "^no luck$"):
                failed.raise_for_error()
            with self.assertLogs("toolway", "WARNING"):
                stumbled = await host.call("calc", "stumble", check=False)
            self.assertEqual((stumbled.is_error, stumbled.text), (True, "'nothing here'"))

    async def test_what_is_not_there_or_does_not_fit_is_an_exception_of_its_own(self) -> None:
        async with self.host(servers=[calc]) as host:
            with self.assertRaises(UnknownServer):
                await host.servers("nobody")
            with self.assertRaises(UnknownTool):
                await host.call("calc", "nothing", check=False)
            with self.assertRaisesRegex(InvalidRequest, "a"):
                await host.call("calc", "add", {"a": "x", "b": 1}, check=False)
            with self.assertRaisesRegex(InvalidRequest, "JSON"):
                await host.call("calc", "add", {"a": {1, 2}, "b": 1}, check=False)
            # None of that did harm to what comes after.
            self.assertEqual(
                (await host.call("calc", "greet", {"name": "B"}, check=False)).text, "Hello, B!"
            )

    async def test_cancelling_the_task_takes_the_call_back_from_the_tool(self) -> None:
        sleeper = Sleeper()
        async with self.host(servers=[server("own", [sleeper.tool])]) as host:
            task = asyncio.create_task(host.call("own", "sleep", check=False))
            await sleeper.began.wait()
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

            async def told() -> bool:
                return sleeper.outcomes == ["cancelled"]

            await eventually(told)

    async def test_a_call_ends_when_its_time_is_over(self) -> None:
        sleeper = Sleeper()
        async with self.host(servers=[server("own", [sleeper.tool])]) as host:
            with self.assertRaises(TimedOut) as raised:
                await host.call("own", "sleep", check=False, timeout=1)
            self.assertIsInstance(raised.exception, TimeoutError)

    async def test_two_hundred_calls_at_once_have_an_outcome_each(self) -> None:
        async with self.host(servers=[calc]) as host:
            calls = [Call("calc", "add", {"a": n, "b": 1}) for n in range(198)]
            outcomes = await host.call_many(
                [*calls, ("calc", "nothing", {}), ("calc", "fail", {"reason": "x"})],
                concurrency=200,
                check=False,
            )
            sums = [
                one.structured["result"] for one in outcomes[:198] if isinstance(one, CallResult)
            ]
            self.assertEqual(sums, [n + 1 for n in range(198)])
            self.assertIsInstance(outcomes[198], UnknownTool)
            last = outcomes[199]
            self.assertTrue(isinstance(last, CallResult) and last.is_error)

    async def test_servers_that_are_programs_are_called_read_and_prompted(self) -> None:
        async with self.host(servers={"files": self.stdio()}) as host:
            first = await host.call("files", "pid", check=False)
            self.assertEqual(
                first.structured, (await host.call("files", "pid", check=False)).structured
            )
            [row] = [row for row in await host.servers("files", tools=True)]
            self.assertEqual(
                (row.status, row.provenance, row.transport), ("connected", "dynamic", "stdio")
            )
            self.assertEqual([one.tool for one in row.tools or []], ["pid"])

    async def test_tools_may_come_and_go_while_they_are_offered(self) -> None:
        own = server("own", [calc.tools["add"]])
        async with self.host(servers=[own]) as host:
            self.assertEqual([one.tool for one in await host.tools()], ["add"])
            own.add(calc.tools["greet"])

            async def names_are(*wanted: str) -> bool:
                return [one.tool for one in await host.tools()] == list(wanted)

            await eventually(lambda: names_are("add", "greet"))
            own.remove("add")
            await eventually(lambda: names_are("greet"))
