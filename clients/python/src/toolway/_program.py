"""Finding the program and running it.

Owns the process: where it is looked for, what it is given, its last words, and its end. What is
said on its pipes is not its business.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ._errors import StartError

logger = logging.getLogger("toolway")

#: How much may stand in a pipe before reading it is put off.
_LIMIT = 1 << 20
#: How long a program may take to end its servers, once it was asked to.
_PATIENCE = 15.0


def find(program: str | os.PathLike[str] | None) -> str:
    """The program: what was given, else ``TOOLWAY_BIN``, else ``toolway`` on ``PATH``."""
    if program is not None:
        wanted, origin = os.fspath(program), "as given"
    elif from_environment := os.environ.get("TOOLWAY_BIN"):
        wanted, origin = from_environment, "from TOOLWAY_BIN"
    else:
        wanted, origin = "toolway", "on PATH"
    found = shutil.which(wanted)
    if found is None:
        hint = "install Toolway, set TOOLWAY_BIN or give `program=`"
        raise StartError(f"no program `{wanted}` ({origin}): {hint}", data={"hint": hint})
    # A relative name must mean the same in the working directory of the child.
    return str(Path(found).absolute())


class Program:
    """A running ``toolway control``."""

    def __init__(self, process: asyncio.subprocess.Process, on_line: Callable[[str], None]) -> None:
        self._process = process
        self._last: deque[str] = deque(maxlen=20)
        self._on_line = on_line
        self._listening = asyncio.get_running_loop().create_task(self._listen())

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        *,
        cwd: str | os.PathLike[str] | None,
        env: Mapping[str, str | None],
        on_line: Callable[[str], None] | None,
    ) -> Program:
        variables = dict(os.environ)
        for name, value in env.items():
            if value is None:
                variables.pop(name, None)
            else:
                variables[name] = value
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=cwd,
                env=variables,
                limit=_LIMIT,
                # Ctrl-C on a terminal is for this program, which then ends Toolway in order.
                start_new_session=True,
            )
        except OSError as error:
            raise StartError(f"`{command[0]}` cannot be started: {error}") from error
        return cls(process, on_line or (lambda line: logger.info("toolway: %s", line)))

    @property
    def pid(self) -> int:
        return self._process.pid

    def streams(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """What it writes, and where it reads."""
        assert self._process.stdout is not None and self._process.stdin is not None
        return self._process.stdout, self._process.stdin

    async def exited(self) -> None:
        """Wait for the end of the process."""
        await self._process.wait()

    async def how_it_ended(self) -> str:
        """In words, with what it said last."""
        try:
            code = await asyncio.wait_for(self._process.wait(), 2)
            await asyncio.wait([self._listening], timeout=1)
        except asyncio.TimeoutError:
            return "toolway closed its output and goes on running"
        ended = "toolway ended"
        if code < 0:
            ended += f", killed by {_signal_name(-code)}"
        elif code > 0:
            ended += f" with exit code {code}"
        return f"{ended}: {'; '.join(self._last)}" if self._last else ended

    async def ended(self) -> None:
        """Wait for the end, and bring it about where it does not come by itself."""
        for step in (None, self._process.terminate, self._process.kill):
            if step is not None and self._process.returncode is None:
                logger.warning("toolway does not end; it is made to")
                try:
                    step()
                except ProcessLookupError:
                    pass
            try:
                await asyncio.wait_for(self._process.wait(), _PATIENCE)
                break
            except asyncio.TimeoutError:
                continue
        await asyncio.wait([self._listening], timeout=1)
        self._listening.cancel()

    def kill(self) -> None:
        """The end without a word, for when there is no time left."""
        if self._process.returncode is None:
            try:
                self._process.kill()
            except ProcessLookupError:
                pass

    async def _listen(self) -> None:
        assert self._process.stderr is not None
        rest = b""
        while chunk := await self._process.stderr.read(1 << 16):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self._say(line)
            if len(rest) > 1 << 16:
                self._say(rest)
                rest = b""
        if rest:
            self._say(rest)

    def _say(self, line: bytes) -> None:
        text = line.decode(errors="replace").rstrip()
        if text:
            self._last.append(text)
            try:
                self._on_line(text)
            except Exception:
                logger.exception("the callback for stderr failed")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
