"""Use Toolway, an MCP host, from Python.

.. code-block:: python

    import asyncio
    from toolway import Toolway, server, tool

    @tool
    async def add(a: float, b: float) -> float:
        "Add two numbers."
        return a + b

    async def main() -> None:
        async with Toolway(servers=[server("calc", [add])]) as host:
            result = await host.call("calc", "add", {"a": 2, "b": 40})
            print(result.text)

    asyncio.run(main())
"""

from ._agent import Agent
from ._errors import (
    AgentError,
    ConnectionClosed,
    InDoubt,
    InvalidRequest,
    NeedsAuth,
    NotFound,
    ProtocolError,
    Refused,
    ServerError,
    StartError,
    TakenBack,
    TimedOut,
    ToolError,
    ToolwayError,
    Unavailable,
    UnknownAgent,
    UnknownQuestion,
    UnknownServer,
    UnknownTool,
)
from ._events import Events
from ._hooks import Hook, HookInput, HookReply
from ._host import Toolway
from ._own import Context, FunctionTool, Server, server, tool
from ._questions import (
    Accept,
    Allow,
    Cancel,
    Decline,
    Deny,
    ElicitationQuestion,
    PermissionQuestion,
)
from ._results import (
    BinaryContent,
    CallResult,
    LinkContent,
    OtherContent,
    Progress,
    PromptMessage,
    PromptResult,
    ReadResult,
    ResourceContent,
    TextContent,
)
from ._rows import (
    Approval,
    Event,
    Login,
    Prompt,
    Resource,
    ServerStatus,
    SetResult,
    Tool,
)
from ._version import __version__
from ._view import Call, View

__all__ = [
    "Accept",
    "Agent",
    "AgentError",
    "Allow",
    "Approval",
    "BinaryContent",
    "Call",
    "CallResult",
    "Cancel",
    "ConnectionClosed",
    "Context",
    "Decline",
    "Deny",
    "ElicitationQuestion",
    "Event",
    "Events",
    "FunctionTool",
    "Hook",
    "HookInput",
    "HookReply",
    "InDoubt",
    "InvalidRequest",
    "LinkContent",
    "Login",
    "NeedsAuth",
    "NotFound",
    "OtherContent",
    "PermissionQuestion",
    "Progress",
    "Prompt",
    "PromptMessage",
    "PromptResult",
    "ProtocolError",
    "ReadResult",
    "Refused",
    "Resource",
    "ResourceContent",
    "Server",
    "ServerError",
    "ServerStatus",
    "SetResult",
    "StartError",
    "TakenBack",
    "TextContent",
    "TimedOut",
    "Tool",
    "ToolError",
    "Toolway",
    "ToolwayError",
    "Unavailable",
    "UnknownAgent",
    "UnknownQuestion",
    "UnknownServer",
    "UnknownTool",
    "View",
    "__version__",
    "server",
    "tool",
]
