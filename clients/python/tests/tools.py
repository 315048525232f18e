"""Tools that the tests define, by the package's own means."""

from __future__ import annotations

import asyncio
import time

from toolway import Accept, Context, ToolError, server, tool


@tool
async def add(a: float, b: float) -> float:
    """Add two numbers.

    Args:
        a: The first.
        b: The second.
    """
    return a + b


@tool
async def count(steps: int, ctx: Context) -> str:
    """Count, and say how far."""
    for step in range(1, steps + 1):
        ctx.progress(step, steps, f"step {step}")
    return f"counted to {steps}"


@tool
def threaded(ctx: Context) -> str:
    """Work in a thread, and say how far."""
    ctx.progress(1, 1)
    time.sleep(0.01)
    return "done in a thread"


@tool
async def fail(reason: str) -> str:
    """Fail."""
    raise ToolError(reason)


@tool
async def stumble() -> str:
    """Fail by accident."""
    raise KeyError("nothing here")


@tool
async def confirm(what: str, ctx: Context) -> str:
    """Ask the person first."""
    schema = {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}
    answer = await ctx.elicit(f"Really {what}?", schema)
    if isinstance(answer, Accept):
        return f"{what}: {answer.content}"
    return f"not {what}: {type(answer).__name__}"


@tool("greet", "Greet somebody", {"name": str})
async def greet(given: dict[str, str]) -> dict[str, object]:
    return {"content": [{"type": "text", "text": f"Hello, {given['name']}!"}]}


class Sleeper:
    """A tool that ends when it is told to, and says what became of it."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.release = asyncio.Event()
        self.outcomes: list[str] = []

        @tool
        async def sleep() -> str:
            """Sleep until somebody wakes it."""
            self.began.set()
            try:
                await self.release.wait()
            except asyncio.CancelledError:
                self.outcomes.append("cancelled")
                raise
            self.outcomes.append("woke")
            return "slept"

        self.tool = sleep


calc = server("calc", [add, count, threaded, fail, stumble, confirm, greet])
