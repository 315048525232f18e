"""What every Python client of this folder does: goes through what `toolway serve` offers, and prints
what it saw as one JSON document. `README.md` in the folder above says what stands there.

A client is anything with the methods that `tour` uses; each script has one for its library.
"""

import json
import sys
from contextlib import nullcontext

import anyio


def plain(value):
    """A model of any library as plain data."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def target() -> dict:
    """The last word of the command line."""
    return json.loads(sys.argv[-1])


def text(result) -> str:
    return "".join(part.text for part in result.content)


def structured(result):
    value = getattr(result, "structured_content", None)
    return value if value is not None else getattr(result, "structuredContent", None)


def is_error(result) -> bool:
    value = getattr(result, "is_error", None)
    return bool(value if value is not None else result.isError)


class Seen:
    """What a client saw."""

    def __init__(self) -> None:
        self.progress: list = []
        self.asked: list = []
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forgets which lists were said to have changed."""
        self.changed: dict = {name: anyio.Event() for name in ("tools", "prompts", "resources")}

    async def on_progress(self, progress, total, message=None) -> None:
        self.progress.append([int(progress), int(total)])

    def note_message(self, message) -> None:
        """A notification, whatever the library makes of it."""
        message = getattr(message, "root", message)
        method = getattr(message, "method", "") or type(message).__name__
        for name, event in self.changed.items():
            words = (f"notifications/{name}/list_changed", f"{name[:-1].title()}ListChanged")
            if method == words[0] or words[1] in method:
                event.set()


async def tour(client, seen: Seen, listening=nullcontext) -> dict:
    """Goes through everything. `listening` is a context in which changes of lists are heard; without
    one they are not."""
    found: dict = {"server": await client.server()}
    found["tools"] = sorted(await client.tools())
    found["resources"] = sorted(await client.resources())
    found["templates"] = sorted(await client.templates())
    found["prompts"] = sorted(await client.prompts())
    found["echo"] = text(await client.call("everything__echo", {"message": "hi"}))
    weather = await client.call("everything__get-structured-content", {"location": "New York"})
    found["structured"] = structured(weather)
    found["read"] = plain(await client.read("chaos:own"))
    found["prompt"] = plain(await client.prompt("chaos__greet", {"who": "Ada"}))
    found["completion"] = await client.complete("chaos__greet", "who", "a")
    counted = await client.call(
        "everything__trigger-long-running-operation",
        {"duration": 1, "steps": 2},
        seen.on_progress,
    )
    found["counted"] = text(counted)
    failed = await client.call("chaos__fail", {})
    found["failed"] = {"isError": is_error(failed), "text": text(failed)}
    found["unknown"] = await client.failure("chaos__no-such-tool")
    found["elicited"] = text(await client.call("chaos__elicit", {}))

    async def report() -> dict:
        return structured(await client.call("chaos__report", {}))

    if client.CANCELS:
        calls = (await report())["calls"]
        async with anyio.create_task_group() as group:
            group.start_soon(client.call, "chaos__hang", {})
            # A report is a call, too; the server has the one that hangs when there is one more.
            reports = 1
            while (await report())["calls"] - calls == reports:
                reports += 1
            group.cancel_scope.cancel()
        # The server hears of it a moment later.
        while not (cancellations := (await report())["cancellations"]):
            pass
        found["cancellations"] = cancellations
    if listening is not None:
        async with listening():
            # What was heard while servers came is not what is waited for.
            seen.begin_anew()
            await client.call("chaos__grow", {})
            for event in seen.changed.values():
                await event.wait()
        found["changed"] = sorted(name for name, event in seen.changed.items() if event.is_set())
        found["grown"] = sorted(set(await client.tools()) - set(found["tools"]))
    found["progress"] = seen.progress
    found["asked"] = seen.asked
    return found
