/** Server objects of the Claude Agent SDK and of the official SDKs, as they are. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { createSdkMcpServer, tool as sdkTool } from "@anthropic-ai/claude-agent-sdk";
import { McpServer as McpServer1 } from "@modelcontextprotocol/sdk/server/mcp.js";
import { ElicitResultSchema } from "@modelcontextprotocol/sdk/types.js";
import { McpServer as McpServer2 } from "@modelcontextprotocol/server";
import { z } from "zod";

import { Home, Signal } from "./support.js";

test("a server of the Claude Agent SDK is called after a question, and asks one", async (context) => {
  const multiply = sdkTool(
    "multiply",
    "Multiply",
    { a: z.number(), b: z.number() },
    async ({ a, b }) => ({
      content: [{ type: "text", text: String(a * b) }],
    }),
  );
  const order = sdkTool("order", "Order", { what: z.string() }, async ({ what }, extra) => {
    const requestedSchema = { type: "object", properties: { pieces: { type: "integer" } } };
    const params = { message: `How many ${what}?`, requestedSchema };
    const { sendRequest } = extra as {
      sendRequest: (request: object, schema: object) => Promise<unknown>;
    };
    const answer = await sendRequest({ method: "elicitation/create", params }, ElicitResultSchema);
    return { content: [{ type: "text", text: JSON.stringify(answer) }] };
  });
  const asked: string[] = [];
  const host = await new Home(context).start({
    servers: { store: createSdkMcpServer({ name: "store", tools: [multiply, order] }) },
    canUseTool: ({ name, provenance }) => {
      asked.push(`${name} (${provenance})`);
      return { behavior: "allow" };
    },
    onElicitation: ({ message }) => {
      asked.push(message);
      return { action: "accept", content: { pieces: 3 } };
    },
  });
  try {
    assert.equal((await host.call("store", "multiply", { a: 6, b: 7 })).text, "42");
    const ordered = JSON.parse(
      (await host.call("store", "order", { what: "apples" })).text,
    ) as object;
    assert.deepEqual(ordered, { action: "accept", content: { pieces: 3 } });
    assert.deepEqual(asked, [
      "mcp__store__multiply (sdk)",
      "mcp__store__order (sdk)",
      "How many apples?",
    ]);
  } finally {
    await host.close();
  }
});

test("servers of both versions of the official SDK are called and taken back", async (context) => {
  const [began, over] = [new Signal(), new Signal()];
  const one = new McpServer1({ name: "one", version: "1" });
  one.registerTool("greet", { inputSchema: { name: z.string() } }, async ({ name }) => ({
    content: [{ type: "text", text: `Hello, ${name}!` }],
  }));
  one.registerTool("sleep", {}, async ({ signal }) => {
    began.tell();
    await new Promise((done) => signal.addEventListener("abort", done));
    over.tell();
    return { content: [] };
  });
  const two = new McpServer2({ name: "two", version: "1" });
  two.registerTool("greet", { inputSchema: z.object({ name: z.string() }) }, async ({ name }) => ({
    content: [{ type: "text", text: `Hello, ${name}!` }],
  }));
  const host = await new Home(context).start({ servers: { one, two } });
  try {
    for (const name of ["one", "two"]) {
      assert.equal(
        (await host.call(name, "greet", { name: "Ada" }, { check: false })).text,
        "Hello, Ada!",
      );
    }
    const controller = new AbortController();
    const call = host.call("one", "sleep", {}, { check: false, signal: controller.signal });
    await began.happened;
    controller.abort(new Error("enough"));
    await assert.rejects(call, /enough/);
    await over.happened;
  } finally {
    await host.close();
  }
});
