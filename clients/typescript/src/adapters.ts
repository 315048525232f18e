/**
 * Servers as a program gives them: definitions, servers of our own, and server objects of other
 * SDKs, taken as they are.
 *
 * Owns recognising them and speaking to them: anything that connects to a transport, as the official
 * TypeScript SDK's do (versions 1 and 2), and what the Claude Agent SDK's `createSdkMcpServer` makes.
 */

import { readFileSync } from "node:fs";

import { describe, isObject, object, type JsonObject } from "./json.js";
import { OwnServer } from "./own.js";
import { TAKEN_BACK, type Connect, type Outlet, type Session } from "./sessions.js";

/** A server object of the official SDK: `McpServer` or `Server`, version 1 or 2. */
export interface SdkServer {
  connect(transport: any): Promise<void>;
  close(): Promise<void>;
}

/** A definition with the keys of a configuration file. */
export interface ServerDefinition {
  type?: string;
  command?: string;
  args?: readonly string[];
  env?: Readonly<Record<string, string>>;
  url?: string;
  headers?: Readonly<Record<string, string>>;
  [key: string]: unknown;
}

/** What `createSdkMcpServer` makes. */
export interface SdkServerDefinition {
  type: "sdk";
  name?: string;
  instance: SdkServer | OwnServer;
  [key: string]: unknown;
}

export type ServerLike = ServerDefinition | SdkServerDefinition | SdkServer | OwnServer;

/** Servers by name, a list of the program's own, or the path of a JSON file. */
export type Servers = Readonly<Record<string, ServerLike>> | Iterable<OwnServer> | string | URL;

/** A server that was read. */
export interface Known {
  entry: JsonObject;
  connect: Connect | undefined;
  instance: unknown;
}

/** For each name the definition for Toolway, and how to connect to what lives in this program. */
export function readServers(servers: Servers | undefined): Map<string, Known> {
  const known = new Map<string, Known>();
  if (servers === undefined) return known;
  if (typeof servers === "string" || servers instanceof URL) {
    const whole = object(JSON.parse(readFileSync(servers, "utf8")));
    return readServers(object(whole["mcpServers"] ?? whole) as Record<string, ServerLike>);
  }
  if (isIterable(servers)) {
    for (const one of servers) {
      if (!(one instanceof OwnServer))
        throw new TypeError("this server has no name: give servers as an object");
      if (known.has(one.name)) throw new TypeError(`two servers are called \`${one.name}\``);
      known.set(one.name, read(one.name, one));
    }
    return known;
  }
  for (const [name, one] of Object.entries(servers)) known.set(name, read(name, one));
  return known;
}

function isIterable(servers: object): servers is Iterable<OwnServer> {
  return Symbol.iterator in servers;
}

function read(name: string, one: ServerLike): Known {
  if (one instanceof OwnServer)
    return { entry: one.entry(), connect: (outlet) => one.connect(outlet), instance: one };
  if (isSdkServer(one)) return { entry: { type: "sdk" }, connect: connector(one), instance: one };
  if (!isObject(one))
    throw new TypeError(`server \`${name}\` is ${String(one)}, which is no definition`);
  if (one["type"] !== "sdk") return { entry: one, connect: undefined, instance: undefined };
  // As the Claude Agent SDK writes it. The server knows its own name; the key counts here.
  const { instance, name: _, ...entry } = one;
  if (instance instanceof OwnServer) {
    return {
      entry: { ...instance.entry(), ...entry },
      connect: (outlet) => instance.connect(outlet),
      instance,
    };
  }
  if (isSdkServer(instance)) return { entry, connect: connector(instance), instance };
  throw new TypeError(
    `server \`${name}\` has no server object: give \`server(…)\`, or a server of the MCP SDK or of createSdkMcpServer`,
  );
}

function isSdkServer(one: unknown): one is SdkServer {
  if (typeof one !== "object" || one === null || one instanceof OwnServer) return false;
  const { connect, close } = one as Partial<SdkServer>;
  return typeof connect === "function" && typeof close === "function";
}

function connector(instance: SdkServer): Connect {
  return (outlet) => new TransportSession(instance, outlet);
}

/** One after the other: a server object of the SDK has one client at a time. */
const turns = new WeakMap<SdkServer, Promise<void>>();

/** A server object's conversation. It is the transport that the object is connected to. */
class TransportSession implements Session {
  onmessage?: (message: any) => void;
  onclose?: () => void;
  onerror?: (error: Error) => void;
  readonly #server: SdkServer;
  readonly #outlet: Outlet;
  readonly #waiting = new Map<unknown, (reply: JsonObject) => void>();
  readonly #ready: Promise<void>;
  readonly #over = new AbortController();

  constructor(server: SdkServer, outlet: Outlet) {
    this.#server = server;
    this.#outlet = outlet;
    const before = turns.get(server) ?? Promise.resolve();
    this.#ready = before.then(() => server.connect(this));
    this.#ready.catch(() => {});
  }

  async start(): Promise<void> {}

  /** What the server says. */
  async send(message: JsonObject): Promise<void> {
    if (message["method"] === undefined) {
      this.#waiting.get(message["id"])?.(message);
    } else if (message["id"] === undefined) {
      this.#outlet.notify(message);
    } else {
      void this.#outlet
        .request(message, this.#over.signal)
        .then((reply) => this.onmessage?.(reply));
    }
  }

  async close(): Promise<void> {
    if (this.#over.signal.aborted) return;
    this.#over.abort();
    for (const [id, answer] of this.#waiting) {
      answer({ jsonrpc: "2.0", id, error: { code: -32603, message: "the server has ended" } });
    }
    const closed = this.#ready
      .catch(() => {})
      .then(() => this.onclose?.())
      .then(() => this.#server.close())
      .catch(() => {});
    turns.set(this.#server, closed);
    await closed;
  }

  async request(message: JsonObject, signal: AbortSignal): Promise<JsonObject> {
    const { id } = message;
    const failed = (words: string) => ({
      jsonrpc: "2.0",
      id,
      error: { code: -32603, message: words },
    });
    try {
      await this.#ready;
    } catch (error) {
      return failed(`the server object cannot be connected: ${describe(error)}`);
    }
    if (this.#over.signal.aborted) return failed("the server has ended");
    return new Promise((done) => {
      const stop = () => {
        // It may have been taken back inside, before.
        if (!this.#waiting.has(id)) return;
        answer({ jsonrpc: "2.0", id, error: TAKEN_BACK });
        this.onmessage?.({
          jsonrpc: "2.0",
          method: "notifications/cancelled",
          params: { requestId: id },
        });
      };
      const answer = (reply: JsonObject) => {
        signal.removeEventListener("abort", stop);
        this.#waiting.delete(id);
        done(reply);
      };
      this.#waiting.set(id, answer);
      signal.addEventListener("abort", stop, { once: true });
      this.onmessage?.(message);
    });
  }

  take(message: JsonObject): void {
    if (message["method"] === "notifications/cancelled") {
      const id = object(message["params"])["requestId"];
      const answer = this.#waiting.get(id);
      if (answer === undefined) return;
      answer({ jsonrpc: "2.0", id, error: TAKEN_BACK });
    }
    void this.#ready.then(() => this.onmessage?.(message)).catch(() => {});
  }
}
