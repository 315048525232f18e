/**
 * Servers that live in this program: who is connected to which, and how messages find them.
 *
 * Owns the routing of `toolway/servers/message`. What a server answers is the business of the
 * sessions: our own (`own.ts`) or those of other SDKs (`adapters.ts`).
 */

import { ToolwayError, toWire } from "./errors.js";
import { object, text, type JsonObject } from "./json.js";
import { Reply, type Pipe } from "./pipe.js";

const METHOD = "toolway/servers/message";

/** The answer to a request that was taken back by MCP's own notification. */
export const TAKEN_BACK = { code: -32005, message: "taken back", data: { reason: "cancelled" } };

/** What a session says to its client, which is Toolway. */
export class Outlet {
  readonly #pipe: Pipe;
  readonly #address: JsonObject;

  constructor(pipe: Pipe, address: JsonObject) {
    this.#pipe = pipe;
    this.#address = address;
  }

  /** Send a notification, in the order of the calls. */
  notify(message: JsonObject): void {
    if (this.#pipe.closed) return;
    this.#pipe.post(METHOD, { ...this.#address, message }).catch(() => {});
  }

  /** Send a request; its reply, which may be an error. */
  async request(message: JsonObject, signal?: AbortSignal): Promise<JsonObject> {
    try {
      const answer = await this.#pipe.request(METHOD, { ...this.#address, message }, { signal });
      return object(object(answer)["message"]);
    } catch (error) {
      const known = error instanceof ToolwayError ? toWire(error) : TAKEN_BACK;
      return { jsonrpc: "2.0", id: message["id"], error: known };
    }
  }
}

/** One client's conversation with a server. */
export interface Session {
  /** Answer a request; the signal is aborted when it is taken back. */
  request(message: JsonObject, signal: AbortSignal): Promise<JsonObject>;
  /** Take a notification. */
  take(message: JsonObject): void;
  /** The client has gone. */
  close(): Promise<void>;
}

/** Makes a session for a new client. */
export type Connect = (outlet: Outlet) => Session;

/**
 * All servers of this program and who is connected to them. Several may be connected to one: the
 * program's own view, and each agent that has the server.
 */
export class Sessions {
  readonly #pipe: Pipe;
  readonly #connects = new Map<string, Connect>();
  readonly #open = new Map<string, Map<number, Session>>();
  /** Connections that are over, for each name: what comes late must not open one anew. */
  readonly #over = new Map<string, Set<number>>();
  readonly #closing = new Set<Promise<void>>();

  constructor(pipe: Pipe) {
    this.#pipe = pipe;
    pipe.handlers.set(METHOD, (params, signal) => this.#message(params, signal));
    pipe.notified.set("toolway/servers/closed", ({ server, connection }) => {
      if (typeof connection === "number") this.#end(String(server), connection);
    });
  }

  /** From now on new clients of this name meet this server. */
  offer(name: string, connect: Connect): void {
    this.#connects.set(name, connect);
  }

  /** Nobody meets it any more. */
  withdraw(name: string): void {
    this.#connects.delete(name);
    for (const number of [...(this.#open.get(name)?.keys() ?? [])]) this.#end(name, number);
  }

  /** End everything. */
  async close(): Promise<void> {
    for (const [name, sessions] of this.#open) {
      for (const number of [...sessions.keys()]) this.#end(name, number);
    }
    await Promise.all(this.#closing);
  }

  async #message(params: JsonObject, signal: AbortSignal): Promise<JsonObject> {
    const message = object(params["message"]);
    if (text(message["method"]) === undefined)
      throw new Reply(-32602, "a message without a method");
    const session = this.#session(String(params["server"]), params["connection"]);
    if (message["id"] === undefined) {
      session.take(message);
      return {};
    }
    return { message: await session.request(message, signal) };
  }

  #session(name: string, connection: unknown): Session {
    const number = typeof connection === "number" ? connection : 1;
    let sessions = this.#open.get(name);
    const found = sessions?.get(number);
    if (found !== undefined) return found;
    if (this.#over.get(name)?.has(number)) {
      throw new Reply(-32602, `connection ${number} to \`${name}\` is over`);
    }
    const connect = this.#connects.get(name);
    if (connect === undefined) {
      const words = `this program has no server \`${name}\``;
      throw new Reply(-32602, words, { reason: "unknown-server" });
    }
    if (sessions === undefined) this.#open.set(name, (sessions = new Map()));
    const session = connect(new Outlet(this.#pipe, { server: name, connection: number }));
    sessions.set(number, session);
    return session;
  }

  #end(name: string, number: number): void {
    const found = this.#open.get(name)?.get(number);
    if (found === undefined) return;
    this.#open.get(name)?.delete(number);
    this.#over.set(name, (this.#over.get(name) ?? new Set()).add(number));
    const closing = found
      .close()
      .catch(() => {})
      .finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }
}
