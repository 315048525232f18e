/** Servers connected anew, switched off and on, and watched; agents that have a part of them. */

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { InvalidRequest, ToolwayError, Unavailable, UnknownAgent, server, tool } from "toolway";

import { Home } from "./support.js";
import { add, calc, greet } from "./tools.js";

const VOUCHED = { check: false };

test("another object behind an equal entry is connected anew", async (context) => {
  const numbered = (number: number) => {
    const which = tool("which", "Which object this is", { type: "object" }, () => String(number));
    return server("own", [which]);
  };
  const host = await new Home(context).start({ servers: { own: numbered(1) } });
  try {
    assert.equal((await host.call("own", "which", {}, VOUCHED)).text, "1");
    const result = await host.setServers({ own: numbered(2) });
    assert.deepEqual([result.added, result.removed], [[], []]);
    assert.equal((await host.call("own", "which", {}, VOUCHED)).text, "2");
  } finally {
    await host.close();
  }
});

test("a server is connected anew, switched off and on", async (context) => {
  const home = new Home(context);
  const host = await home.start({ servers: { stdio: home.stdio() } });
  try {
    const first = (await host.call("stdio", "pid", {}, VOUCHED)).text;
    assert.equal((await host.reconnect("stdio")).status, "connected");
    assert.notEqual((await host.call("stdio", "pid", {}, VOUCHED)).text, first);
    assert.equal((await host.disable("stdio")).status, "disabled");
    await assert.rejects(host.call("stdio", "pid", {}, VOUCHED), (error: unknown) => {
      assert.ok(error instanceof Unavailable);
      return error.state === "disabled";
    });
    await host.enable("stdio");
    assert.ok((await host.call("stdio", "pid", {}, VOUCHED)).text);
  } finally {
    await host.close();
  }
});

test("what happens is told, and listening ends with the loop or with Toolway", async (context) => {
  const host = await new Home(context).start({ servers: [calc()] });
  try {
    await host.tools();
    const [first, second] = [host.events(), host.events()];
    await host.reconnect("calc");
    for await (const event of first) if (event.server === "calc") break;
    assert.deepEqual(await first.next(), { done: true, value: undefined });
    await host.close();
    for await (const event of second) assert.ok(event.event);
  } finally {
    await host.close();
  }
});

test("servers are read from a file, and strict leaves out all others", async (context) => {
  const home = new Home(context);
  const file = join(home.folder, "servers.json");
  writeFileSync(file, JSON.stringify({ mcpServers: { stdio: home.stdio() } }));
  const host = await home.start({ servers: file, strict: true });
  try {
    assert.deepEqual(
      (await host.servers()).map((row) => row.name),
      ["stdio"],
    );
    assert.deepEqual(
      (await host.resources()).map((row) => row.uri),
      ["peer://motto"],
    );
    assert.equal((await host.read("stdio", "peer://motto")).text, "one host, every server");
    assert.deepEqual(
      (await host.prompts()).map((row) => row.prompt),
      ["review"],
    );
    const prompt = await host.prompt("stdio", "review", { language: "Rust" });
    assert.deepEqual(prompt.messages[0]?.content, { type: "text", text: "Review this Rust." });
  } finally {
    await host.close();
  }
});

test("an agent sees what it was given, and ends with its own servers", async (context) => {
  const home = new Home(context);
  const host = await home.start({ servers: [calc(), server("more", [add, greet])] });
  try {
    const agent = await host.agent("reader", {
      servers: ["more", { own: home.stdio() }],
      required: ["own"],
      tools: ["mcp__more__greet", "mcp__own__*"],
    });
    assert.deepEqual(
      (await agent.tools()).map((one) => one.name),
      ["mcp__more__greet", "mcp__own__pid"],
    );
    assert.equal((await agent.call("more", "greet", { name: "A" }, VOUCHED)).text, "Hello, A!");
    assert.ok((await agent.call("own", "pid", {}, VOUCHED)).text);
    await assert.rejects(agent.call("more", "add", { a: 1, b: 2 }, VOUCHED), ToolwayError);
    await agent.end();
    await assert.rejects(agent.tools(), UnknownAgent);
    const objects = { servers: [{ own: { type: "sdk" } }] };
    await assert.rejects(host.agent("reader", objects), InvalidRequest);
  } finally {
    await host.close();
  }
});

test("what is in effect can be looked at", async (context) => {
  const home = new Home(context);
  const hooks = [{ event: "PreToolUse" as const, matcher: "mcp__calc__*", callback: () => {} }];
  const host = await home.start({ servers: [calc()], hooks });
  try {
    await host.call("calc", "greet", { name: "Ada" }, VOUCHED);
    const { calls } = (await host.audit({ server: "calc" })) as { calls: { tool: string }[] };
    assert.deepEqual(
      calls.map((call) => call.tool),
      ["greet"],
    );
    assert.deepEqual(
      (await host.hooks()).map((row) => row["event"]),
      ["PreToolUse"],
    );
    assert.deepEqual(await host.permissions(), []);
    assert.equal((await host.explain("calc"))["name"], "calc");
    const { servers } = (await host.context()) as { servers: { server: string }[] };
    assert.deepEqual(
      servers.map((row) => row.server),
      ["calc"],
    );
    assert.equal((await host.status())["pid"], host.pid);
    assert.deepEqual(await host.questions(), { questions: [] });
    assert.ok(Array.isArray((await host.logs("calc"))["lines"]));
  } finally {
    await host.close();
  }
});
