"""What can go wrong, as a small tree of exceptions.

Owns how an error on the wire becomes an exception: by ``data.reason``, one word that Toolway
promises to keep. Everything raised by this package is a :class:`ToolwayError`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class ToolwayError(Exception):
    """Whatever Toolway could not or would not do.

    ``reason`` is the word of the protocol, ``code`` the JSON-RPC code, ``data`` what came with it.
    """

    reason: str = "error"

    def __init__(
        self,
        message: str,
        *,
        reason: str | None = None,
        code: int | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        if reason is not None:
            self.reason = reason
        self.code = code
        self.data: Mapping[str, Any] = data or {}

    @property
    def hint(self) -> str | None:
        """What to do about it, where Toolway knows."""
        hint = self.data.get("hint")
        return hint if isinstance(hint, str) else None


class StartError(ToolwayError):
    """Toolway could not be found or started, or is another version than this package speaks."""

    reason = "start"


class ConnectionClosed(ToolwayError):
    """Toolway has ended, and what was asked was not carried out, or changes nothing."""

    reason = "closed"


class InvalidRequest(ToolwayError):
    """The parameters do not fit; the message says which."""

    reason = "invalid"


class NotFound(ToolwayError):
    """Nothing has that name."""

    reason = "unknown"


class UnknownServer(NotFound):
    """No server has that name."""

    reason = "unknown-server"


class UnknownTool(NotFound):
    """No tool has that name."""

    reason = "unknown-tool"


class UnknownAgent(NotFound):
    """No agent has that name, or it has ended."""

    reason = "unknown-agent"


class UnknownQuestion(NotFound):
    """No question with that id waits for an answer."""

    reason = "unknown-question"


class Refused(ToolwayError):
    """A rule, a hook, the policy or a person said no. Nothing was sent."""

    reason = "refused"

    @property
    def by(self) -> str | None:
        """Who said no."""
        by = self.data.get("by")
        return by if isinstance(by, str) else None


class Unavailable(ToolwayError):
    """The server is not connected. Nothing was sent."""

    reason = "unavailable"

    @property
    def state(self) -> str | None:
        """Where the server stands."""
        state = self.data.get("state")
        return state if isinstance(state, str) else None


class NeedsAuth(ToolwayError):
    """The server wants a login; ``hint`` says how."""

    reason = "needs-auth"


class TimedOut(ToolwayError, TimeoutError):
    """No answer in time."""

    reason = "timed-out"


class TakenBack(ToolwayError):
    """Toolway took the request back."""

    reason = "cancelled"


class InDoubt(ToolwayError):
    """The connection was lost under way.

    The call may have been carried out, and was not sent again.
    """

    reason = "in-doubt"


class ServerError(ToolwayError):
    """The server answered with an error of its own: ``code`` and ``server_data`` are its words."""

    reason = "server"

    @property
    def server_data(self) -> Any:
        """What the server sent along."""
        return self.data.get("data")


class AgentError(ToolwayError):
    """An agent could not begin; ``obstacles`` says which server and why."""

    reason = "obstacles"

    @property
    def obstacles(self) -> Any:
        """What stood in the way, as Toolway told it."""
        return self.data.get("obstacles")


class ToolError(ToolwayError):
    """A tool says of itself that it failed (``isError``).

    Raised by :meth:`toolway.CallResult.raise_for_error`; raise it in a tool of your own to have its
    words, and nothing else, told to the caller.
    """

    reason = "tool"


class ProtocolError(ToolwayError):
    """The other side said something that this package cannot make sense of."""

    reason = "protocol"


_BY_REASON: dict[str, type[ToolwayError]] = {
    kind.reason: kind
    for kind in (
        InvalidRequest,
        UnknownServer,
        UnknownTool,
        UnknownAgent,
        UnknownQuestion,
        Refused,
        Unavailable,
        NeedsAuth,
        TimedOut,
        TakenBack,
        InDoubt,
        ServerError,
    )
}


def from_wire(error: object) -> ToolwayError:
    """The exception for a JSON-RPC error."""
    if not isinstance(error, Mapping):
        return ProtocolError(f"an error that is no object: {error!r}")
    data = error.get("data")
    data = data if isinstance(data, Mapping) else {}
    message = error.get("message")
    code = error.get("code")
    reason = data.get("reason")
    if "obstacles" in data:
        kind: type[ToolwayError] = AgentError
    elif isinstance(reason, str):
        kind = _BY_REASON.get(reason, NotFound if reason.startswith("unknown-") else ToolwayError)
    else:
        kind = ToolwayError
    return kind(
        message if isinstance(message, str) else "an error without words",
        reason=reason if isinstance(reason, str) else None,
        code=code if isinstance(code, int) else None,
        data=data,
    )
