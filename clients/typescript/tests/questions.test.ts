/** Questions that Toolway asks this program, and hooks. */

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  Refused,
  type ElicitationAnswer,
  type PermissionQuestion,
  type ToolwayOptions,
} from "toolway";

import { Home, Signal } from "./support.js";
import { calc } from "./tools.js";

test("the program is asked, and its yes and no hold", async (context) => {
  const asked: PermissionQuestion[] = [];
  const host = await new Home(context).start({
    servers: [calc()],
    canUseTool: (question) => {
      asked.push(question);
      if (question.tool === "add") return { behavior: "deny", message: "not today" };
      return { behavior: "allow", updatedArguments: { name: "Bob" }, remember: "session" };
    },
  });
  try {
    assert.equal((await host.call("calc", "greet", { name: "Ada" })).text, "Hello, Bob!");
    assert.equal((await host.call("calc", "greet", { name: "Ada" })).text, "Hello, Ada!");
    await assert.rejects(host.call("calc", "add", { a: 1, b: 2 }), (error: unknown) => {
      assert.ok(error instanceof Refused);
      assert.match(error.message, /not today/);
      return error.by === "person";
    });
    const [first] = asked;
    assert.deepEqual(
      [first?.server, first?.provenance, first?.name],
      ["calc", "sdk", "mcp__calc__greet"],
    );
    assert.deepEqual(
      asked.map((question) => question.tool),
      ["greet", "add"],
    );
  } finally {
    await host.close();
  }
});

test("a callback that fails refuses the call and says why", async (context) => {
  const warnings: string[] = [];
  const host = await new Home(context).start({
    servers: [calc()],
    onWarning: (words) => void warnings.push(words),
    canUseTool: () => {
      throw new Error("cannot decide");
    },
  });
  try {
    await assert.rejects(
      host.call("calc", "greet", { name: "Ada" }),
      /canUseTool failed: Error: cannot decide/,
    );
    assert.deepEqual(warnings, ["canUseTool failed; the call is refused"]);
  } finally {
    await host.close();
  }
});

test("a question that is not wanted any more is taken back", async (context) => {
  const [asked, takenBack] = [new Signal(), new Signal()];
  const host = await new Home(context).start({
    servers: [calc()],
    canUseTool: (_, { signal }) =>
      new Promise(() => {
        signal.addEventListener("abort", () => takenBack.tell());
        asked.tell();
      }),
  });
  try {
    const controller = new AbortController();
    const call = host.call("calc", "greet", { name: "Ada" }, { signal: controller.signal });
    await asked.happened;
    controller.abort(new Error("enough"));
    await assert.rejects(call, /enough/);
    await takenBack.happened;
  } finally {
    await host.close();
  }
});

test("a form is answered by the program", async (context) => {
  const home = new Home(context);
  const confirm = async (onElicitation: NonNullable<ToolwayOptions["onElicitation"]>) => {
    const host = await home.start({ servers: [calc()], onElicitation, onWarning: () => {} });
    try {
      return JSON.parse(
        (await host.call("calc", "confirm", {}, { check: false })).text,
      ) as ElicitationAnswer;
    } finally {
      await host.close();
    }
  };
  const accept = await confirm((question) => {
    assert.deepEqual(
      [question.server, question.mode, question.message],
      ["calc", "form", "Really?"],
    );
    return { action: "accept", content: { sure: true } };
  });
  assert.deepEqual(accept, { action: "accept", content: { sure: true } });
  assert.deepEqual(await confirm(() => ({ action: "decline" })), { action: "decline" });
  const failed = await confirm(() => {
    throw new Error("nobody there");
  });
  assert.deepEqual(failed, { action: "cancel" });
});

test("hooks see calls, change them, and refuse them where they fail", async (context) => {
  const home = new Home(context);
  const greet = async (callback: NonNullable<ToolwayOptions["hooks"]>[number]["callback"]) => {
    const host = await home.start({
      servers: [calc()],
      onWarning: () => {},
      hooks: [{ event: "PreToolUse", matcher: "mcp__calc__*", callback }],
    });
    try {
      return (await host.call("calc", "greet", { name: "Ada" }, { check: false })).text;
    } finally {
      await host.close();
    }
  };
  const renamed = await greet((input) => {
    assert.deepEqual(
      [input.server, input.tool, input.arguments],
      ["calc", "greet", { name: "Ada" }],
    );
    return { updatedInput: { name: "Bob" } };
  });
  assert.equal(renamed, "Hello, Bob!");
  await assert.rejects(
    greet(() => ({ permissionDecision: "deny" })),
    Refused,
  );
  await assert.rejects(
    greet(() => {
      throw new Error("cannot judge");
    }),
    /cannot judge/,
  );
});
