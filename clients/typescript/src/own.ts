/**
 * Tools of the program's own, made of functions.
 *
 * Owns the server that such tools make, and what a tool can do while it runs. It speaks MCP of
 * 2025-11-25 and nothing beyond tools: a server with more is written with an SDK, and taken by
 * `Toolway` as it is.
 */

import { ToolError, fromWire } from "./errors.js";
import { describe, given, isObject, object, text, type JsonObject } from "./json.js";
import type { ElicitationAnswer } from "./questions.js";
import { isResult } from "./results.js";
import { TAKEN_BACK, type Outlet, type Session } from "./sessions.js";

const VERSIONS = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/** What a tool can do while it runs. */
export interface ToolContext {
  /** Aborted when the call is taken back. */
  signal: AbortSignal;
  /** The request's `_meta`. */
  meta: JsonObject;
  /** Say how far the work is; nobody hears it unless the caller asked. */
  progress(progress: number, total?: number, message?: string): void;
  /** Write to the server's log, which `toolway logs` shows. */
  log(level: string, data: unknown): void;
  /** Ask the person by a form. */
  elicit(message: string, schema: JsonObject): Promise<ElicitationAnswer>;
  /** Ask the client anything else that MCP has, such as `roots/list`. */
  request(method: string, params?: JsonObject): Promise<JsonObject>;
}

/** A schema that knows its own types and can say itself in JSON: zod 4.2 and newer, Valibot, ArkType. */
export interface StandardSchema<Output = unknown> {
  readonly "~standard": {
    readonly version: number;
    readonly vendor: string;
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly jsonSchema?: {
      readonly input: (options: { target: string }) => Record<string, unknown>;
    };
  };
}

type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly { readonly message: string }[] };

/** How the arguments of a tool are described. */
export type InputSchema = JsonObject | StandardSchema;

/** What a schema says of the arguments. */
export type ArgumentsOf<Schema> =
  Schema extends StandardSchema<infer Output> ? Output : Record<string, any>;

/** What a tool may give back: a text, anything that JSON holds, or a result of MCP. */
export type ToolOutput = unknown;

/** What else may be said of a tool. */
export interface ToolExtras {
  title?: string;
  outputSchema?: JsonObject;
  annotations?: JsonObject;
}

/** A function that is a tool. */
export interface FunctionTool {
  readonly name: string;
  /** As a list of tools has it. */
  readonly row: JsonObject;
  run(given: JsonObject, context: ToolContext): Promise<JsonObject>;
}

/** Make a tool of a function. */
export function tool<const Schema extends InputSchema>(
  name: string,
  description: string,
  inputSchema: Schema,
  handler: (given: ArgumentsOf<Schema>, context: ToolContext) => ToolOutput | Promise<ToolOutput>,
  extras: ToolExtras = {},
): FunctionTool {
  const standard = isStandard(inputSchema) ? inputSchema["~standard"] : undefined;
  const schema = standard === undefined ? (inputSchema as JsonObject) : jsonSchema(name, standard);
  const row = given({ name, description, inputSchema: schema, ...extras });
  return {
    name,
    row,
    async run(raw, context) {
      try {
        let values: unknown = raw;
        if (standard !== undefined) {
          const judged = await standard.validate(raw);
          if (judged.issues !== undefined)
            return failed(judged.issues.map((issue) => issue.message).join("; "));
          values = judged.value;
        }
        return result(await handler(values as ArgumentsOf<Schema>, context));
      } catch (error) {
        if (error instanceof ToolError) return failed(error.message);
        return failed(
          error instanceof Error && error.message !== "" ? error.message : describe(error),
        );
      }
    },
  };
}

function isStandard(schema: InputSchema): schema is StandardSchema {
  return typeof schema["~standard"] === "object";
}

function jsonSchema(name: string, standard: StandardSchema["~standard"]): JsonObject {
  if (standard.jsonSchema === undefined) {
    throw new TypeError(
      `the schema of tool \`${name}\` (${standard.vendor}) cannot be written as JSON: give a JSON Schema, or a ` +
        "newer version of that library (zod 4.2)",
    );
  }
  const { $schema: _, ...schema } = standard.jsonSchema.input({ target: "draft-2020-12" });
  return schema;
}

function result(value: unknown): JsonObject {
  if (isResult(value)) return value;
  if (value === undefined || value === null) return { content: [] };
  if (typeof value === "string") return { content: [{ type: "text", text: value }] };
  const content = [{ type: "text", text: JSON.stringify(value) }];
  return isObject(value) ? { content, structuredContent: value } : { content };
}

function failed(words: string): JsonObject {
  return { content: [{ type: "text", text: words }], isError: true };
}

/** What else may be said of a server. */
export interface ServerOptions {
  version?: string;
  instructions?: string;
  /** Tools that may always, never, or only after a question be called. */
  policies?: Record<string, "always_allow" | "always_ask" | "always_deny">;
}

/** Tools of this program under one name. */
export class OwnServer {
  readonly #tools = new Map<string, FunctionTool>();
  readonly #options: ServerOptions;
  readonly #sessions = new Set<OwnSession>();

  constructor(
    readonly name: string,
    tools: Iterable<FunctionTool>,
    options: ServerOptions = {},
  ) {
    this.#options = options;
    for (const one of tools) {
      if (this.#tools.has(one.name))
        throw new TypeError(`server \`${name}\` has two tools \`${one.name}\``);
      this.#tools.set(one.name, one);
    }
  }

  /** One tool more (or another in its place), also while clients are connected. */
  add(one: FunctionTool): void {
    this.#tools.set(one.name, one);
    this.#changed();
  }

  /** One tool less. */
  remove(name: string): void {
    if (this.#tools.delete(name)) this.#changed();
  }

  /** The definition that Toolway is given. What it would ask at the start is in it. */
  entry(): JsonObject {
    const policies = Object.entries(this.#options.policies ?? {});
    return given({
      type: "sdk",
      manifest: { initialize: this.greeting(VERSIONS[0]), tools: this.rows() },
      tools:
        policies.length === 0
          ? undefined
          : policies.map(([name, policy]) => ({ name, permission_policy: policy })),
    });
  }

  /** The answer to `initialize`. */
  greeting(wanted: unknown): JsonObject {
    const { version = "1.0.0", instructions } = this.#options;
    return given({
      protocolVersion: VERSIONS.find((known) => known === wanted) ?? VERSIONS[0],
      capabilities: { tools: { listChanged: true }, logging: {} },
      serverInfo: { name: this.name, version },
      instructions,
    });
  }

  /** All tools, as `tools/list` has them. */
  rows(): JsonObject[] {
    return [...this.#tools.values()].map((one) => one.row);
  }

  /** The tool of a name. */
  tool(name: unknown): FunctionTool | undefined {
    return this.#tools.get(String(name));
  }

  /** A new client. */
  connect(outlet: Outlet): Session {
    const session = new OwnSession(this, outlet, () => this.#sessions.delete(session));
    this.#sessions.add(session);
    return session;
  }

  #changed(): void {
    for (const session of this.#sessions) session.notify("notifications/tools/list_changed", {});
  }
}

/** A server of this program's own: `servers: { calc: server("calc", [add]) }`. */
export function server(
  name: string,
  tools: Iterable<FunctionTool>,
  options: ServerOptions = {},
): OwnServer {
  return new OwnServer(name, tools, options);
}

/** One client of an {@link OwnServer}. */
class OwnSession implements Session {
  readonly #own: OwnServer;
  readonly #outlet: Outlet;
  readonly #gone: () => void;
  readonly #running = new Map<unknown, AbortController>();
  #nextId = 1;

  constructor(own: OwnServer, outlet: Outlet, gone: () => void) {
    this.#own = own;
    this.#outlet = outlet;
    this.#gone = gone;
  }

  async request(message: JsonObject, signal: AbortSignal): Promise<JsonObject> {
    const { id, method } = message;
    const params = object(message["params"]);
    const reply = { jsonrpc: "2.0", id };
    switch (method) {
      case "initialize":
        return { ...reply, result: this.#own.greeting(params["protocolVersion"]) };
      case "tools/list":
        return { ...reply, result: { tools: this.#own.rows() } };
      case "ping":
      case "logging/setLevel":
        return { ...reply, result: {} };
      case "tools/call":
        return { ...reply, ...(await this.#call(id, params, signal)) };
      default:
        return { ...reply, error: { code: -32601, message: `no method \`${String(method)}\`` } };
    }
  }

  take(message: JsonObject): void {
    if (message["method"] === "notifications/cancelled") {
      this.#running.get(object(message["params"])["requestId"])?.abort(new ToolError("taken back"));
    }
  }

  async close(): Promise<void> {
    this.#gone();
    for (const controller of this.#running.values())
      controller.abort(new ToolError("the client has gone"));
  }

  notify(method: string, params: JsonObject): void {
    this.#outlet.notify({ jsonrpc: "2.0", method, params });
  }

  async #call(id: unknown, params: JsonObject, outer: AbortSignal): Promise<JsonObject> {
    const found = this.#own.tool(params["name"]);
    if (found === undefined)
      return { error: { code: -32602, message: `no tool \`${String(params["name"])}\`` } };
    const controller = new AbortController();
    const signal = AbortSignal.any([controller.signal, outer]);
    this.#running.set(id, controller);
    try {
      // A tool that does not look at its signal must not hold the answer up.
      const stopped = new Promise<JsonObject>((done) => {
        signal.addEventListener("abort", () => done({ error: TAKEN_BACK }), { once: true });
      });
      const run = found.run(object(params["arguments"]), this.#context(params, signal));
      return await Promise.race([run.then((result) => ({ result })), stopped]);
    } finally {
      this.#running.delete(id);
    }
  }

  #context(params: JsonObject, signal: AbortSignal): ToolContext {
    const meta = object(params["_meta"]);
    const token = meta["progressToken"];
    const ask = (method: string, asked: JsonObject) => this.#ask(method, asked, signal);
    return {
      signal,
      meta,
      progress: (progress, total, message) => {
        if (token === undefined || signal.aborted) return;
        this.notify(
          "notifications/progress",
          given({ progressToken: token, progress, total, message }),
        );
      },
      log: (level, data) => this.notify("notifications/message", { level, data }),
      request: (method, asked = {}) => ask(method, asked),
      async elicit(message, requestedSchema) {
        const answer = await ask("elicitation/create", { mode: "form", message, requestedSchema });
        const action = text(answer["action"]);
        if (action === "accept") return { action, content: object(answer["content"]) };
        return { action: action === "decline" ? action : "cancel" };
      },
    };
  }

  async #ask(method: string, params: JsonObject, signal: AbortSignal): Promise<JsonObject> {
    const message = { jsonrpc: "2.0", id: this.#nextId++, method, params };
    const reply = await this.#outlet.request(message, signal);
    if (reply["error"] !== undefined) throw fromWire(reply["error"]);
    return object(reply["result"]);
  }
}
