"""A client on version 2 of the official Python SDK, for Toolway's tests.

Usage: sdk2_client.py legacy|modern TARGET
"""

import json
import sys
from contextlib import asynccontextmanager, nullcontext

import anyio
import httpx2
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from tour import Seen, target, tour


class SdkClient:
    CANCELS = True

    def __init__(self, client: Client) -> None:
        self.client = client

    async def server(self) -> str:
        return self.client.server_info.name

    async def tools(self) -> list[str]:
        return [it.name for it in (await self.client.list_tools()).tools]

    async def resources(self) -> list[str]:
        return [str(it.uri) for it in (await self.client.list_resources()).resources]

    async def templates(self) -> list[str]:
        found = await self.client.list_resource_templates()
        return [it.uri_template for it in found.resource_templates]

    async def prompts(self) -> list[str]:
        return [it.name for it in (await self.client.list_prompts()).prompts]

    async def call(self, name: str, arguments: dict, progress=None):
        return await self.client.call_tool(name, arguments, progress_callback=progress)

    async def read(self, uri: str):
        return (await self.client.read_resource(uri)).contents

    async def prompt(self, name: str, arguments: dict):
        return (await self.client.get_prompt(name, arguments)).messages

    async def complete(self, name: str, argument: str, value: str) -> list[str]:
        about = types.PromptReference(type="ref/prompt", name=name)
        found = await self.client.complete(about, {"name": argument, "value": value})
        return found.completion.values

    async def failure(self, name: str):
        try:
            await self.client.call_tool(name, {})
        except MCPError as error:
            return {"code": error.error.code, "message": error.error.message}


@asynccontextmanager
async def reached(where: dict):
    if "url" in where:
        headers = {"Authorization": f"Bearer {where['token']}"}
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
            yield streamable_http_client(where["url"], http_client=http)
    else:
        yield StdioServerParameters(
            command=where["command"], args=where["args"], env=where["env"]
        )


async def main(mode: str) -> None:
    seen = Seen()

    async def elicited(context, params):
        seen.asked.append(params.message)
        return types.ElicitResult(action="accept", content={"word": "yes"})

    async def heard(message) -> None:
        seen.note_message(message)

    async with reached(target()) as server:
        async with Client(
            server, mode=mode, elicitation_callback=elicited, message_handler=heard
        ) as client:

            @asynccontextmanager
            async def listening():
                async with client.listen(
                    tools_list_changed=True,
                    prompts_list_changed=True,
                    resources_list_changed=True,
                ) as changes, anyio.create_task_group() as group:

                    async def follow() -> None:
                        async for change in changes:
                            seen.note_message(change)

                    group.start_soon(follow)
                    yield
                    group.cancel_scope.cancel()

            here = nullcontext if mode == "legacy" else listening
            found = await tour(SdkClient(client), seen, here)
    print(json.dumps(found))


anyio.run(main, "legacy" if sys.argv[1] == "legacy" else "auto")
