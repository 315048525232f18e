/**
 * Tools that the tests define, by the package's own means.
 */

import { ToolError, server, tool } from "toolway";
import { z } from "zod";

import { Signal } from "./support.js";

export const add = tool(
  "add",
  "Add two numbers",
  z.object({ a: z.number(), b: z.number() }),
  ({ a, b }) => ({ sum: a + b }),
);

export const greet = tool(
  "greet",
  "Greet somebody",
  { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
  async ({ name }) => `Hello, ${name}!`,
);

const count = tool(
  "count",
  "Count, and say how far",
  z.object({ steps: z.number() }),
  ({ steps }, context) => {
    for (let step = 1; step <= steps; step++) context.progress(step, steps, `step ${step}`);
    return `counted to ${steps}`;
  },
);

const fail = tool("fail", "Fail", { type: "object" }, () => {
  throw new ToolError("no luck");
});

const confirm = tool("confirm", "Ask the person first", { type: "object" }, async (_, context) => {
  const schema = { type: "object", properties: { sure: { type: "boolean" } } };
  return JSON.stringify(await context.elicit("Really?", schema));
});

/** Fresh for each test: a server of ours may be connected to more than one. */
export const calc = () => server("calc", [add, greet, count, fail, confirm]);

/** A tool that ends only when it is taken back. */
export function sleeper(): { own: ReturnType<typeof server>; began: Signal; over: Signal } {
  const [began, over] = [new Signal(), new Signal()];
  const sleep = tool("sleep", "Sleep", { type: "object" }, async (_, { signal }) => {
    began.tell();
    await new Promise((done) => signal.addEventListener("abort", done));
    over.tell();
  });
  return { own: server("own", [sleep]), began, over };
}
