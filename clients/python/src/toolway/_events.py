"""What happens, as an asynchronous iterator.

Owns the queue of each listener. One who is slow misses the oldest events and is told how many.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from ._rows import Event, read_event

_MOST = 4096


class Events:
    """``async for event in host.events():``; ends with Toolway."""

    def __init__(self, gone: Callable[[Events], None], over: bool) -> None:
        self._queue: deque[Event] = deque()
        self._missed = 0
        self._over = over
        self._news = asyncio.Event()
        self._gone = gone

    def __aiter__(self) -> Events:
        return self

    async def __anext__(self) -> Event:
        while True:
            if self._missed:
                missed, self._missed = self._missed, 0
                return Event("missed", None, {"event": "missed", "count": missed})
            if self._queue:
                return self._queue.popleft()
            if self._over:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()

    async def __aenter__(self) -> Events:
        return self

    async def __aexit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Listen no longer."""
        self._gone(self)
        self._queue.clear()
        self._missed = 0
        self.end()

    def put(self, raw: dict[str, Any]) -> None:
        """Something happened."""
        if len(self._queue) >= _MOST:
            self._queue.popleft()
            self._missed += 1
        self._queue.append(read_event(raw))
        self._news.set()

    def end(self) -> None:
        """Nothing happens any more."""
        self._over = True
        self._news.set()
