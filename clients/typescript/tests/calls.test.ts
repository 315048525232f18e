/** Calls: their results, their errors, and how they are taken back. */

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  CallResult,
  InvalidRequest,
  ToolError,
  UnknownServer,
  UnknownTool,
  server,
  type Progress,
} from "toolway";

import { Home, eventually } from "./support.js";
import { add, calc, greet, sleeper } from "./tools.js";

test("tools of this program are listed and called with typed results", async (context) => {
  const host = await new Home(context).start({ servers: [calc()] });
  try {
    const tools = await host.tools();
    const found = tools.find((one) => one.tool === "add");
    assert.equal(found?.name, "mcp__calc__add");
    assert.deepEqual([found?.server, found?.provenance], ["calc", "sdk"]);
    assert.deepEqual(found?.inputSchema["required"], ["a", "b"]);
    const result = await host.call<{ sum: number }>(
      "calc",
      "add",
      { a: 2, b: 40 },
      { check: false },
    );
    assert.equal(result.structured?.sum, 42);
    assert.deepEqual(result.raw["content"], [{ type: "text", text: '{"sum":42}' }]);
    const named = await host.callName("mcp__calc__greet", { name: "Ada" }, { check: false });
    assert.equal(named.text, "Hello, Ada!");
  } finally {
    await host.close();
  }
});

test("progress comes in order and before the result", async (context) => {
  const host = await new Home(context).start({ servers: [calc()] });
  try {
    const told: Progress[] = [];
    const onProgress = (progress: Progress) => void told.push(progress);
    const result = await host.call("calc", "count", { steps: 3 }, { check: false, onProgress });
    assert.equal(result.text, "counted to 3");
    assert.deepEqual(
      told.map(({ progress, total }) => [progress, total]),
      [
        [1, 3],
        [2, 3],
        [3, 3],
      ],
    );
  } finally {
    await host.close();
  }
});

test("a tool that fails is a result, and an error only where wanted", async (context) => {
  const host = await new Home(context).start({ servers: [calc()] });
  try {
    const failed = await host.call("calc", "fail", {}, { check: false });
    assert.ok(failed.isError);
    assert.throws(() => failed.throwOnError(), ToolError);
  } finally {
    await host.close();
  }
});

test("what is not there or does not fit is an error of its own", async (context) => {
  const host = await new Home(context).start({ servers: [calc()] });
  try {
    await assert.rejects(host.servers({ server: "nobody" }), UnknownServer);
    await assert.rejects(host.call("calc", "nothing", {}, { check: false }), UnknownTool);
    await assert.rejects(host.call("calc", "add", { a: "x" }, { check: false }), InvalidRequest);
    await assert.rejects(host.call("calc", "add", { a: 1n }, { check: false }), InvalidRequest);
  } finally {
    await host.close();
  }
});

test("aborting the signal takes the call back from the tool", async (context) => {
  const { own, began, over } = sleeper();
  const host = await new Home(context).start({ servers: [own] });
  try {
    const controller = new AbortController();
    const call = host.call("own", "sleep", {}, { check: false, signal: controller.signal });
    await began.happened;
    controller.abort(new Error("enough"));
    await assert.rejects(call, /enough/);
    await over.happened;
  } finally {
    await host.close();
  }
});

test("two hundred calls at once have an outcome each", async (context) => {
  const host = await new Home(context).start({ servers: [calc()] });
  try {
    const calls = Array.from({ length: 199 }, (_, a) => ({
      server: "calc",
      tool: "add",
      arguments: { a, b: 1 },
    }));
    const all = [...calls, { server: "calc", tool: "nothing" }];
    const outcomes = await host.callMany(all, { check: false, concurrency: 200 });
    const sums = outcomes.flatMap((one) => (one instanceof CallResult ? [one.structured] : []));
    assert.deepEqual(
      sums,
      calls.map((_, a) => ({ sum: a + 1 })),
    );
    assert.ok(outcomes[199] instanceof UnknownTool);
  } finally {
    await host.close();
  }
});

test("tools may come and go while they are offered", async (context) => {
  const own = server("own", [add]);
  const host = await new Home(context).start({ servers: [own] });
  try {
    const names = async () => (await host.tools()).map((one) => one.tool).join();
    assert.equal(await names(), "add");
    own.add(greet);
    await eventually(async () => (await names()) === "add,greet");
    own.remove("add");
    await eventually(async () => (await names()) === "greet");
  } finally {
    await host.close();
  }
});

test("the set of servers is the whole set, and another object is connected anew", async (context) => {
  const home = new Home(context);
  const host = await home.start({ servers: { calc: calc(), stdio: home.stdio() } });
  try {
    const first = (await host.call("stdio", "pid", {}, { check: false })).text;
    const result = await host.setServers({
      stdio: home.stdio(),
      more: server("more", [greet]),
      odd: { type: "no-such" },
    });
    assert.deepEqual([result.added, result.removed], [["more"], ["calc"]]);
    assert.deepEqual(Object.keys(result.errors), ["odd"]);
    assert.equal((await host.call("stdio", "pid", {}, { check: false })).text, first);
    assert.deepEqual((await host.servers()).map((row) => row.name).sort(), ["more", "stdio"]);
  } finally {
    await host.close();
  }
});
