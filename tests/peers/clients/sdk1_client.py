"""A client on version 1 of the official Python SDK, for Toolway's tests.

Usage: sdk1_client.py TARGET
"""

import json
from contextlib import asynccontextmanager

import anyio
from mcp import ClientSession, McpError, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client
from tour import Seen, target, tour


class SessionClient:
    # It tells nobody that it does not wait any more.
    CANCELS = False

    def __init__(self, session: ClientSession, name: str) -> None:
        self.session = session
        self.name = name

    async def server(self) -> str:
        return self.name

    async def tools(self) -> list[str]:
        return [it.name for it in (await self.session.list_tools()).tools]

    async def resources(self) -> list[str]:
        return [str(it.uri) for it in (await self.session.list_resources()).resources]

    async def templates(self) -> list[str]:
        found = await self.session.list_resource_templates()
        return [it.uriTemplate for it in found.resourceTemplates]

    async def prompts(self) -> list[str]:
        return [it.name for it in (await self.session.list_prompts()).prompts]

    async def call(self, name: str, arguments: dict, progress=None):
        return await self.session.call_tool(name, arguments, progress_callback=progress)

    async def read(self, uri: str):
        return (await self.session.read_resource(uri)).contents

    async def prompt(self, name: str, arguments: dict):
        return (await self.session.get_prompt(name, arguments)).messages

    async def complete(self, name: str, argument: str, value: str) -> list[str]:
        about = types.PromptReference(type="ref/prompt", name=name)
        found = await self.session.complete(about, {"name": argument, "value": value})
        return found.completion.values

    async def failure(self, name: str):
        try:
            await self.session.call_tool(name, {})
        except McpError as error:
            return {"code": error.error.code, "message": error.error.message}


@asynccontextmanager
async def connected(where: dict):
    if "url" in where:
        headers = {"Authorization": f"Bearer {where['token']}"}
        async with streamablehttp_client(where["url"], headers=headers) as (read, write, _):
            yield read, write
    else:
        program = StdioServerParameters(
            command=where["command"], args=where["args"], env=where["env"]
        )
        async with stdio_client(program) as (read, write):
            yield read, write


async def main() -> None:
    seen = Seen()

    async def elicited(context, params):
        seen.asked.append(params.message)
        return types.ElicitResult(action="accept", content={"word": "yes"})

    async def heard(message) -> None:
        seen.note_message(message)

    async with connected(target()) as (read, write):
        async with ClientSession(
            read, write, elicitation_callback=elicited, message_handler=heard
        ) as session:
            greeting = await session.initialize()
            client = SessionClient(session, greeting.serverInfo.name)
            found = await tour(client, seen)
    print(json.dumps(found))


anyio.run(main)
