"""The examples of the page about the packages, run as they stand there."""

from __future__ import annotations

import asyncio
import os
import sys
import unittest
from pathlib import Path

from .support import Case

FOLDER = os.environ.get("TOOLWAY_EXAMPLES")


@unittest.skipUnless(FOLDER, "TOOLWAY_EXAMPLES names no folder")
class Examples(Case):
    async def test_every_example_prints_what_the_page_says(self) -> None:
        examples = sorted(Path(FOLDER or "").glob("*.py"))
        self.assertTrue(examples)
        for example in examples:
            with self.subTest(example=example.name):
                own = {name: value for name, value in self.env().items() if value is not None}
                path = os.pathsep.join(path for path in sys.path if path)
                process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    str(example),
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE,
                    env={**os.environ, **own, "PYTHONPATH": path},
                    cwd=self.home,
                )
                printed, errors = await asyncio.wait_for(process.communicate(), 60)
                self.assertEqual((process.returncode, errors.decode()), (0, ""))
                self.assertEqual(printed.decode(), example.with_suffix(".out").read_text())
