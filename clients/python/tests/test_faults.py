"""When something ends that should not: each has one clear outcome, and nothing stays behind."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from toolway import ConnectionClosed, InDoubt, StartError, Toolway, server

from .support import Case, eventually
from .tools import Sleeper, calc


class Faults(Case):
    async def test_a_program_that_is_not_there_is_told_with_what_to_do(self) -> None:
        with self.assertRaisesRegex(StartError, "no program `toolway-no-such`") as raised:
            async with Toolway(program="toolway-no-such"):
                pass
        self.assertIn("TOOLWAY_BIN", raised.exception.hint or "")

    async def test_a_program_that_ends_at_once_is_told_with_its_last_words(self) -> None:
        program = self.script("echo 'no such thing' >&2; exit 3")
        with self.assertRaisesRegex(StartError, "ended with exit code 3: no such thing"):
            async with self.host(program=program):
                pass

    async def test_a_program_of_another_kind_is_told(self) -> None:
        with self.assertRaisesRegex(StartError, "does not know this protocol"):
            async with self.host(program=self.script("exec cat")):
                pass

    async def test_a_program_that_says_nothing_is_not_waited_for_forever(self) -> None:
        with self.assertRaisesRegex(StartError, "said nothing in 0.2 s"):
            async with self.host(program=self.script("exec cat >/dev/null"), start_timeout=0.2):
                pass

    async def test_a_call_under_way_is_in_doubt_when_toolway_is_killed(self) -> None:
        sleeper = Sleeper()
        servers = {"own": server("own", [sleeper.tool]), "stdio": self.stdio()}
        async with self.host(servers=servers) as host:
            await host.call("stdio", "pid", check=False)
            events = host.events()
            call = asyncio.create_task(host.call("own", "sleep", check=False))
            await sleeper.began.wait()
            assert host.pid is not None
            os.kill(host.pid, signal.SIGKILL)
            with self.assertRaisesRegex(InDoubt, "SIGKILL.*was not sent again"):
                await call
            # The tool of this program ends too, and the listener is told.

            async def told() -> bool:
                return sleeper.outcomes == ["cancelled"]

            await eventually(told)
            self.assertEqual([one async for one in events if one.kind == "missed"], [])
            with self.assertRaisesRegex(ConnectionClosed, "SIGKILL"):
                await host.tools()
            with self.assertRaises(ConnectionClosed):
                await host.call("own", "sleep")
            self.assertTrue(host.closed)

    async def test_leaving_the_block_ends_calls_and_servers(self) -> None:
        sleeper = Sleeper()
        async with self.host(
            servers={"own": server("own", [sleeper.tool]), "stdio": self.stdio()}
        ) as host:
            await host.call("stdio", "pid", check=False)
            self.assertTrue(any("stdio_server" in one for one in self.processes()))
            call = asyncio.create_task(host.call("own", "sleep", check=False))
            await sleeper.began.wait()
        with self.assertRaises(InDoubt):
            await call
        self.assertEqual(sleeper.outcomes, ["cancelled"])
        self.nothing_is_left()

    async def test_an_exception_in_the_block_is_what_comes_out_of_it(self) -> None:
        with self.assertRaisesRegex(ValueError, "mine"):
            async with self.host(servers=[calc]):
                raise ValueError("mine")

    async def test_a_program_that_is_killed_leaves_no_toolway(self) -> None:
        script = self.home / "victim.py"
        script.write_text(
            "import asyncio\n"
            "from toolway import Toolway\n"
            "async def main():\n"
            f"    async with Toolway(servers={{'stdio': {self.stdio()!r}}}) as host:\n"
            "        await host.call('stdio', 'pid', check=False)\n"
            "        print('ready', flush=True)\n"
            "        await asyncio.Event().wait()\n"
            "asyncio.run(main())\n"
        )
        own = {name: value for name, value in self.env().items() if value is not None}
        env = {
            **os.environ,
            **own,
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        }
        victim = await asyncio.create_subprocess_exec(
            sys.executable, str(script), stdout=asyncio.subprocess.PIPE, env=env, cwd=self.home
        )
        self.addCleanup(end, victim)
        assert victim.stdout is not None
        self.assertEqual(await victim.stdout.readline(), b"ready\n")
        self.assertTrue(any("stdio_server" in one for one in self.processes()))
        victim.kill()
        await victim.wait()
        self.nothing_is_left()

    def script(self, body: str) -> Path:
        """A program that is not Toolway."""
        path = self.home / "program"
        path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        path.chmod(0o755)
        return path


def end(victim: asyncio.subprocess.Process) -> None:
    """What a test that failed left."""
    if victim.returncode is None:
        victim.kill()
