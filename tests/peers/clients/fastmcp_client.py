"""FastMCP's client, for Toolway's tests.

Usage: fastmcp_client.py legacy|auto TARGET
"""

import json
import sys
from contextlib import nullcontext

import anyio
import mcp_types as types
from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from mcp.shared.exceptions import MCPError
from tour import Seen, target, tour


class FastClient:
    CANCELS = True

    def __init__(self, client: Client) -> None:
        self.client = client

    async def server(self) -> str:
        return self.client.server_info.name

    async def tools(self) -> list[str]:
        return [it.name for it in await self.client.list_tools()]

    async def resources(self) -> list[str]:
        return [str(it.uri) for it in await self.client.list_resources()]

    async def templates(self) -> list[str]:
        return [it.uri_template for it in await self.client.list_resource_templates()]

    async def prompts(self) -> list[str]:
        return [it.name for it in await self.client.list_prompts()]

    async def call(self, name: str, arguments: dict, progress=None):
        return await self.client.call_tool_mcp(name, arguments, progress_handler=progress)

    async def read(self, uri: str):
        return await self.client.read_resource(uri)

    async def prompt(self, name: str, arguments: dict):
        return (await self.client.get_prompt(name, arguments)).messages

    async def complete(self, name: str, argument: str, value: str) -> list[str]:
        about = types.PromptReference(type="ref/prompt", name=name)
        return (await self.client.complete(about, {"name": argument, "value": value})).values

    async def failure(self, name: str):
        try:
            await self.client.call_tool_mcp(name, {})
        except MCPError as error:
            return {"code": error.error.code, "message": error.error.message}


async def main(mode: str) -> None:
    seen = Seen()
    where = target()

    async def elicited(message, response_type, params, context):
        seen.asked.append(message)
        return {"word": "yes"}

    async def heard(message) -> None:
        seen.note_message(message)

    if "url" in where:
        transport = StreamableHttpTransport(where["url"], auth=where["token"])
    else:
        transport = StdioTransport(
            command=where["command"], args=where["args"], env=where["env"], keep_alive=False
        )
    async with Client(
        transport, elicitation_handler=elicited, message_handler=heard, mode=mode
    ) as client:
        # It opens no stream for changes in the modern era.
        listening = nullcontext if mode == "legacy" else None
        found = await tour(FastClient(client), seen, listening)
    print(json.dumps(found))


anyio.run(main, sys.argv[1])
