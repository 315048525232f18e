/**
 * Agents: a part of what the program has, under rules that only narrow.
 *
 * Owns the beginning and the end of one. What it can do in between is the {@link View}.
 */

import { ConnectionClosed, InvalidRequest, UnknownAgent } from "./errors.js";
import { given, isObject, object, rows, text, type JsonObject } from "./json.js";
import type { ServerDefinition } from "./adapters.js";
import type { ServerStatus } from "./rows.js";
import { View, type Ask } from "./view.js";

/** What an agent is given. */
export interface AgentOptions {
  /** Names of servers, and definitions of its own; all that the program sees, if left out. */
  servers?: readonly (string | Readonly<Record<string, ServerDefinition>>)[];
  /** Without these it does not begin. */
  required?: readonly string[];
  /** Only these tools. */
  tools?: readonly string[];
  /** None of these. */
  disallowedTools?: readonly string[];
  asks?: { permission?: boolean; form?: boolean; url?: boolean };
}

type Asking = (method: string, params: JsonObject, options?: Ask) => Promise<JsonObject>;

/** An agent of this program: `await using agent = await host.agent("reader", { servers: ["files"] })`. */
export class Agent extends View implements AsyncDisposable {
  readonly #ask: Asking;
  #id: string | undefined;

  private constructor(
    readonly name: string,
    ask: Asking,
    answer: JsonObject,
  ) {
    super();
    this.#ask = ask;
    this.#id = text(answer["agent"]);
    this.serversAtStart = rows<ServerStatus>(answer["servers"]);
    this.missing = Array.isArray(answer["missing"]) ? answer["missing"] : [];
  }

  /** Its servers, as they stood when it began. */
  readonly serversAtStart: readonly ServerStatus[];
  /** Servers that it asked for and that are not there. */
  readonly missing: readonly unknown[];

  /** What Toolway calls it, as long as it lives. */
  get id(): string | undefined {
    return this.#id;
  }

  /** Begin. */
  static async start(ask: Asking, name: string, options: AgentOptions): Promise<Agent> {
    for (const one of options.servers ?? []) if (typeof one !== "string") check(one);
    return new Agent(name, ask, await ask("toolway/agents/start", given({ name, ...options })));
  }

  /** End it, and servers of its own with it. */
  async end(): Promise<void> {
    const agent = this.#id;
    this.#id = undefined;
    if (agent === undefined) return;
    try {
      await this.#ask("toolway/agents/end", { agent });
    } catch (error) {
      // It may have ended with Toolway, or by itself.
      if (!(error instanceof ConnectionClosed || error instanceof UnknownAgent)) throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
  }

  protected override async ask(
    method: string,
    params: JsonObject,
    options: Ask = {},
  ): Promise<JsonObject> {
    if (this.#id === undefined) {
      throw new UnknownAgent(`the agent \`${this.name}\` has ended`, { reason: "unknown-agent" });
    }
    return this.#ask(method, { ...params, agent: this.#id }, options);
  }
}

function check(own: Readonly<Record<string, ServerDefinition>>): void {
  for (const [name, definition] of Object.entries(own)) {
    if (isObject(definition) && object(definition)["type"] !== "sdk") continue;
    const words = `server \`${name}\` lives in this program: put it into the servers of the program, and let the agent name it`;
    throw new InvalidRequest(words, { reason: "invalid" });
  }
}
