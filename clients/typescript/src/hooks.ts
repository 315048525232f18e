/**
 * Hooks that are functions of this program.
 *
 * Owns what such a function is shown and how its words are written; what they mean is Toolway's
 * (its page on hooks).
 */

import { given, isObject, object, text, type JsonObject } from "./json.js";
import { Reply } from "./pipe.js";

export type HookEvent =
  "PreToolUse" | "PostToolUse" | "PostToolUseFailure" | "Elicitation" | "ElicitationResult";

/** What a hook is told. `raw` is what a hook program reads on stdin. */
export interface HookInput {
  event: string;
  server: string | undefined;
  tool: string | undefined;
  toolName: string | undefined;
  arguments: JsonObject;
  result: JsonObject | undefined;
  message: string | undefined;
  raw: JsonObject;
}

/** What a hook says, in the words of a hook program; all may be left out. */
export interface HookReply {
  permissionDecision?: "allow" | "ask" | "deny";
  permissionDecisionReason?: string;
  updatedInput?: JsonObject;
  additionalContext?: string;
  updatedToolOutput?: unknown;
  action?: "accept" | "decline" | "cancel";
  content?: JsonObject;
  systemMessage?: string;
  hookSpecificOutput?: JsonObject;
  continue?: boolean;
  stopReason?: string;
}

/** A function that has a say in calls. What it throws refuses the call where it can. */
export interface Hook {
  event: HookEvent;
  /** Which tools or servers it is about, as in a settings file. */
  matcher?: string;
  /** Seconds. */
  timeout?: number;
  callback(
    input: HookInput,
    options: { signal: AbortSignal },
  ): HookReply | void | Promise<HookReply | void>;
}

/** The hooks of a program, by the names they have on the wire. */
export class Hooks {
  readonly #byName: Map<string, Hook>;

  constructor(hooks: readonly Hook[]) {
    this.#byName = new Map(hooks.map((hook, index) => [`h${index + 1}`, hook]));
  }

  /** For the beginning. */
  toWire(): JsonObject[] {
    return [...this.#byName].map(([callback, { event, matcher, timeout }]) =>
      given({ event, callback, matcher, timeout }),
    );
  }

  /** Run the one that is asked for. */
  async run(params: JsonObject, signal: AbortSignal): Promise<JsonObject> {
    const hook = this.#byName.get(String(params["callback"]));
    if (hook === undefined)
      throw new Reply(-32602, `this program has no hook \`${String(params["callback"])}\``);
    const told = object(params["input"]);
    const result = told["tool_response"];
    const reply: unknown = await hook.callback(
      {
        event: text(params["event"]) ?? hook.event,
        server: text(told["server"]) ?? text(told["mcp_server_name"]),
        tool: text(told["tool"]),
        toolName: text(told["tool_name"]),
        arguments: object(told["tool_input"]),
        result: isObject(result) ? result : undefined,
        message: text(told["message"]),
        raw: told,
      },
      { signal },
    );
    if (reply === undefined || reply === null) return {};
    if (isObject(reply)) return reply;
    throw new TypeError(`a hook answered ${JSON.stringify(reply)}, which is no reply`);
  }
}
