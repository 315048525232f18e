"""What the tests share: a home of their own for each, and a look at what they left behind.

Owns starting the real program (``TOOLWAY_BIN``) where it can see nothing of the person who runs the
tests. What is promised stands in the tests.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import tempfile
import time
import unittest
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from toolway import Toolway

#: Nothing here takes this long, unless it hangs.
PATIENCE = 60.0


class Case(unittest.IsolatedAsyncioTestCase):
    """A test with a home, which must leave no process."""

    def setUp(self) -> None:
        self.mark = f"toolway-test-{uuid.uuid4()}"
        self.home = Path(tempfile.mkdtemp(prefix="toolway-python-"))
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)
        # Cleanups run in reverse: the look around comes before the home goes.
        self.addCleanup(self.nothing_is_left)

    def env(self) -> dict[str, str | None]:
        """An environment in which this test is alone."""
        xdg = ("CONFIG_HOME", "DATA_HOME", "STATE_HOME", "CACHE_HOME", "RUNTIME_DIR")
        own: dict[str, str | None] = {f"XDG_{name}": str(self.home / name.lower()) for name in xdg}
        return {
            **own,
            "HOME": str(self.home),
            "TOOLWAY_DAEMON": "off",
            "TOOLWAY_TEST_MARK": self.mark,
        }

    def host(self, **options: Any) -> Toolway:
        """The program, in this home."""
        options.setdefault("env", self.env())
        options.setdefault("cwd", self.home)
        return Toolway(**options)

    def stdio(self) -> dict[str, Any]:
        """A server that is a program."""
        script = str(Path(__file__).with_name("stdio_server.py"))
        return {"command": sys.executable, "args": [script, self.mark]}

    def settings(self, settings: dict[str, Any]) -> None:
        """Write the settings of the person."""
        folder = self.home / "config_home" / "toolway"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "settings.json").write_text(json.dumps(settings), encoding="utf-8")

    def processes(self) -> list[str]:
        """The command lines of processes that this test caused."""
        found = []
        for folder in Path("/proc").iterdir():
            if not folder.name.isdigit() or folder.name == str(os.getpid()):
                continue
            try:
                words = (folder / "cmdline").read_bytes()
                # Servers get no more of the environment than they need, but all of their words.
                if self.mark.encode() in words + (folder / "environ").read_bytes():
                    found.append(words.replace(b"\0", b" ").decode())
            except OSError:
                continue
        return found

    def nothing_is_left(self) -> None:
        """Everything that was started has ended, or is about to."""
        end = time.monotonic() + 10
        while self.processes() and time.monotonic() < end:
            time.sleep(0.02)
        self.assertEqual(self.processes(), [])


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait until something holds."""
    end = time.monotonic() + PATIENCE
    while not await condition():
        if time.monotonic() > end:
            raise AssertionError("it did not come about")
        await asyncio.sleep(0.01)
