/**
 * The host: a running Toolway and everything that can be asked of it.
 *
 * Owns its life, from `Toolway.start` to `close`, and one clear outcome for whatever waited.
 */

import { resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";

import { readServers, type Known, type Servers } from "./adapters.js";
import { Agent, type AgentOptions } from "./agent.js";
import { ConnectionClosed, ProtocolError, StartError, ToolwayError } from "./errors.js";
import { Events } from "./events.js";
import { Hooks, type Hook } from "./hooks.js";
import { given, isObject, object, rows, type JsonObject } from "./json.js";
import { Pipe } from "./pipe.js";
import { Program, find } from "./program.js";
import { askElicitation, askPermission, type CanUseTool, type OnElicitation } from "./questions.js";
import type { Approval, Login, ServerStatus, SetResult } from "./rows.js";
import { Sessions } from "./sessions.js";
import { VERSION } from "./version.js";
import { View, only, type Ask, type Options } from "./view.js";

const PROTOCOL = 1;

/** How Toolway is started. */
export interface ToolwayOptions {
  /** Servers of this program, beside those that the person has configured. */
  servers?: Servers;
  /** Only `servers`; nothing from files. */
  strict?: boolean;
  /** Answers whether a call may run. */
  canUseTool?: CanUseTool;
  /** Answers what servers ask for. */
  onElicitation?: OnElicitation;
  /** Which kinds of such questions it answers; both, if left out. */
  elicitation?: readonly ("form" | "url")[];
  /** Functions that have a say in calls. */
  hooks?: readonly Hook[];
  /** Directories that servers may know of. */
  roots?: readonly string[];
  /** Whether `events()` is told anything; `true`, if left out. */
  events?: boolean;
  /** The directory whose project files count. */
  cwd?: string;
  /** Variables to add to the environment, or (`undefined`) to take out of it. */
  env?: Readonly<Record<string, string | undefined>>;
  /** Whether to use a daemon. */
  daemon?: "auto" | "attach" | "off";
  /** Where Toolway is; else `TOOLWAY_BIN`, else `toolway` on `PATH`. */
  program?: string;
  /** Further words for its command line. */
  arguments?: readonly string[];
  /** What this program is called in the audit. */
  name?: string;
  version?: string;
  /** Told each line that Toolway writes for people. */
  onStderr?: (line: string) => void;
  /** Told of a callback that failed; `process.emitWarning`, if left out. */
  onWarning?: (words: string, error?: unknown) => void;
  /** How long the beginning may take, in seconds; 30, if left out. */
  startTimeout?: number;
}

/** Toolway, from `start` to `close`. */
export class Toolway extends View implements AsyncDisposable {
  readonly #program: Program;
  readonly #pipe: Pipe;
  readonly #sessions: Sessions;
  readonly #listeners = new Set<Events>();
  readonly #wantsEvents: boolean;
  #servers: Map<string, Known>;
  #closing: Promise<void> | undefined;
  #version = "";
  #errors: Record<string, string> = {};

  private constructor(program: Program, servers: Map<string, Known>, options: ToolwayOptions) {
    super();
    const complain = options.onWarning ?? warn;
    this.#program = program;
    this.#servers = servers;
    this.#wantsEvents = options.events ?? true;
    this.#pipe = new Pipe(program.child.stdout, program.child.stdin, complain);
    this.#sessions = new Sessions(this.#pipe);
    for (const [name, { connect }] of servers)
      if (connect !== undefined) this.#sessions.offer(name, connect);
    const { canUseTool, onElicitation } = options;
    if (canUseTool !== undefined) {
      this.#pipe.handlers.set("toolway/ask/permission", (raw, signal) =>
        askPermission(canUseTool, raw, signal, complain),
      );
    }
    if (onElicitation !== undefined) {
      this.#pipe.handlers.set("toolway/ask/elicitation", (raw, signal) =>
        askElicitation(onElicitation, raw, signal, complain),
      );
    }
    this.#pipe.notified.set("toolway/event", (raw) => {
      for (const listener of this.#listeners) listener.put(raw);
    });
    void program.ended.then((words) => {
      this.#pipe.end(words);
      for (const listener of this.#listeners) listener.end();
    });
  }

  /** Start Toolway. End it with `close()`, or have `await using` do it. */
  static async start(options: ToolwayOptions = {}): Promise<Toolway> {
    const servers = readServers(options.servers);
    const hooks = new Hooks(options.hooks ?? []);
    const path = find(options.program);
    const program = await Program.start([path, "control", ...(options.arguments ?? [])], {
      cwd: options.cwd,
      env:
        options.daemon === undefined
          ? (options.env ?? {})
          : { ...options.env, TOOLWAY_DAEMON: options.daemon },
      onLine: options.onStderr ?? (() => {}),
    });
    const host = new Toolway(program, servers, options);
    host.#pipe.handlers.set("toolway/hook", (params, signal) => hooks.run(params, signal));
    try {
      await host.#begin(path, hooks, options);
    } catch (error) {
      await host.close();
      throw error;
    }
    return host;
  }

  /** The version of Toolway. */
  get version(): string {
    return this.#version;
  }

  /** Servers that could not be, with the reason; they stopped no other. */
  get errors(): Readonly<Record<string, string>> {
    return this.#errors;
  }

  /** Whether Toolway has ended. */
  get closed(): boolean {
    return this.#pipe.closed;
  }

  /** The process that this program talks to. */
  get pid(): number | undefined {
    return this.#program.child.pid;
  }

  /** End Toolway, and everything of this program with it. */
  async close(): Promise<void> {
    this.#closing ??= (async () => {
      this.#pipe.end("this Toolway was closed");
      await this.#sessions.close();
      await this.#program.end();
      for (const listener of this.#listeners) listener.end();
    })();
    await this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Ask anything by its name on the wire: `toolway/…`, or MCP. */
  async request(
    method: string,
    params: JsonObject = {},
    options: Options = {},
  ): Promise<JsonObject> {
    return this.ask(method, params, { ...options, doubtful: method === "tools/call" });
  }

  /**
   * Make these the servers of this program: the whole set. What is not in it ends, what is equal
   * stays connected, what changed is connected anew.
   */
  async setServers(servers: Servers): Promise<SetResult> {
    const before = this.#servers;
    const wanted = readServers(servers);
    for (const [name, { connect }] of wanted)
      if (connect !== undefined) this.#sessions.offer(name, connect);
    const entries = Object.fromEntries([...wanted].map(([name, { entry }]) => [name, entry]));
    const answer = await this.ask("toolway/servers/set", { servers: entries });
    const errors = object(answer["errors"]) as Record<string, string>;
    const result = { added: names(answer["added"]), removed: names(answer["removed"]), errors };
    for (const name of Object.keys(errors)) wanted.delete(name);
    this.#servers = wanted;
    for (const [name, was] of before) {
      if (was.connect !== undefined && wanted.get(name)?.connect === undefined)
        this.#sessions.withdraw(name);
    }
    for (const [name, now] of wanted) {
      const was = before.get(name);
      // Toolway sees an equal entry; that another object stands behind it is known here alone.
      const isSwapped =
        was !== undefined && now.connect !== undefined && was.instance !== now.instance;
      if (isSwapped && isDeepStrictEqual(was.entry, now.entry)) await this.reconnect(name);
    }
    return result;
  }

  /** Connect anew; where the server stands once that is done or has failed. */
  async reconnect(server: string, options: Options = {}): Promise<ServerStatus> {
    return this.#server("toolway/servers/reconnect", { server }, options);
  }

  /** Let a server be used. */
  async enable(server: string, options: Options = {}): Promise<ServerStatus> {
    return this.#server("toolway/servers/enable", { server }, options);
  }

  /** Let a server be unused. */
  async disable(server: string, options: Options = {}): Promise<ServerStatus> {
    return this.#server("toolway/servers/disable", { server }, options);
  }

  /** Log in. Where a page is to be visited, an event says when the login is there. */
  async login(
    server: string,
    options: Options & { account?: string; method?: "browser" | "device" } = {},
  ): Promise<Login> {
    const { signal, ...params } = options;
    return this.ask("toolway/servers/login", { server, ...params }, only(signal));
  }

  /** Log out. */
  async logout(server: string, options: Options & { account?: string } = {}): Promise<void> {
    const { signal, ...params } = options;
    await this.ask("toolway/servers/logout", { server, ...params }, only(signal));
  }

  /** What approving a repository's server would cover. Show it to the person. */
  async approval(server: string): Promise<Approval> {
    return (await this.ask("toolway/servers/approve", { server })) as unknown as Approval;
  }

  /** Yes to exactly what {@link Toolway.approval} told. */
  async approve(server: string, digest: string): Promise<ServerStatus> {
    return this.#server("toolway/servers/approve", { server, digest }, {});
  }

  /** No to what {@link Toolway.approval} told. */
  async reject(server: string, digest: string): Promise<ServerStatus> {
    return this.#server("toolway/servers/reject", { server, digest }, {});
  }

  /** Begin an agent. End it with `end()`, or have `await using` do it. */
  async agent(name: string, options: AgentOptions = {}): Promise<Agent> {
    return Agent.start((method, params, how) => this.ask(method, params, how), name, options);
  }

  /** What happens from now on: `for await (const event of host.events())`. */
  events(): Events {
    if (!this.#wantsEvents) throw new TypeError("this Toolway was started with `events: false`");
    const listener = new Events((gone) => this.#listeners.delete(gone), this.closed);
    this.#listeners.add(listener);
    return listener;
  }

  /** Questions that wait for the owner, as `toolway approvals` shows them. */
  async questions(): Promise<JsonObject> {
    return this.ask("toolway/questions", {});
  }

  /** Answer one of them, by its `id` and one of its `choices`. */
  async answer(id: string, answer: string, reason?: string): Promise<JsonObject> {
    return this.ask("toolway/answer", given({ id, answer, reason }));
  }

  /** Why a server or a tool is as it is, as `toolway explain --json` prints it. */
  async explain(server: string, tool?: string): Promise<JsonObject> {
    return this.ask("toolway/explain", given({ server, tool }));
  }

  /** What a server wrote, as `toolway logs --json` prints it. */
  async logs(server: string, options: { lines?: number } = {}): Promise<JsonObject> {
    return this.ask("toolway/logs", { server, ...options });
  }

  /** Which calls were made, as `toolway audit --json` prints it. */
  async audit(
    options: { since?: string; server?: string; limit?: number } = {},
  ): Promise<JsonObject> {
    return this.ask("toolway/audit", { ...options });
  }

  /** The rules that hold. */
  async permissions(): Promise<JsonObject[]> {
    return rows<JsonObject>((await this.ask("toolway/permissions", {}))["rules"]);
  }

  /** The hooks that run. */
  async hooks(): Promise<JsonObject[]> {
    return rows<JsonObject>((await this.ask("toolway/hooks", {}))["hooks"]);
  }

  /** An estimate of what each server costs a model's context. */
  async context(): Promise<JsonObject> {
    return this.ask("toolway/context", {});
  }

  /** As `toolway status --json` prints it. */
  async status(): Promise<JsonObject> {
    return this.ask("toolway/status", {});
  }

  protected override async ask(
    method: string,
    params: JsonObject,
    options: Ask = {},
  ): Promise<JsonObject> {
    const answer = await this.#pipe.request(method, params, options);
    if (isObject(answer)) return answer;
    throw new ProtocolError(`the answer to \`${method}\` is no object`, { reason: "protocol" });
  }

  async #server(method: string, params: JsonObject, options: Options): Promise<ServerStatus> {
    return object((await this.ask(method, params, options))["server"]) as unknown as ServerStatus;
  }

  async #begin(path: string, hooks: Hooks, options: ToolwayOptions): Promise<void> {
    const { elicitation = ["form", "url"], startTimeout = 30 } = options;
    const asks = (kind: "form" | "url") =>
      options.onElicitation !== undefined && elicitation.includes(kind);
    const failed = (words: string, cause?: unknown) =>
      new StartError(words, { reason: "start", cause });
    const params = given({
      client: { name: options.name ?? "node", version: options.version ?? VERSION },
      asks: { permission: options.canUseTool !== undefined, form: asks("form"), url: asks("url") },
      servers: Object.fromEntries([...this.#servers].map(([name, { entry }]) => [name, entry])),
      strict: options.strict ?? false,
      hooks: hooks.toWire(),
      roots: options.roots?.map((root) => resolve(root)),
      events: this.#wantsEvents,
    });
    const signal = AbortSignal.timeout(startTimeout * 1000);
    let answer: JsonObject;
    try {
      answer = await this.ask("toolway/initialize", params, { signal });
    } catch (error) {
      if (signal.aborted) throw failed(`\`${path} control\` said nothing in ${startTimeout} s`);
      if (error instanceof ConnectionClosed)
        throw failed(`\`${path} control\` could not begin: ${error.message}`, error);
      if (error instanceof ToolwayError && error.code === -32601) {
        throw failed(`\`${path} control\` does not know this protocol`, error);
      }
      throw error;
    }
    if (answer["protocol"] !== PROTOCOL) {
      const theirs = String(answer["protocol"]);
      throw failed(
        `\`${path}\` speaks version ${theirs} of the protocol, and this package version ${PROTOCOL}: upgrade the older one`,
      );
    }
    this.#version = String(answer["version"]);
    this.#errors = object(answer["errors"]) as Record<string, string>;
  }
}

function names(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : [];
}

function warn(words: string, error?: unknown): void {
  const told = error instanceof Error ? `${words}: ${error.stack ?? error.message}` : words;
  process.emitWarning(told, "ToolwayWarning");
}
