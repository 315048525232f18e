/**
 * Questions that Toolway asks this program, and the answers to them.
 *
 * Owns what a callback is shown and how its answer is written. A callback that fails answers no:
 * what nobody decided must not happen.
 */

import { describe, given, isObject, object, rows, text, type JsonObject } from "./json.js";
import type { Provenance } from "./rows.js";

/** A call that somebody has to permit. Trust `provenance` rather than a name. */
export interface PermissionQuestion {
  id: string;
  server: string;
  provenance: Provenance | undefined;
  tool: string;
  name: string;
  title: string | undefined;
  description: string | undefined;
  arguments: JsonObject;
  rule: string | undefined;
  reason: string | undefined;
  changed: unknown[];
  destructive: boolean;
  defaultToNo: boolean;
  agent: string | undefined;
  choices: string[];
  suggestions: JsonObject[];
  /** The question as it came. */
  raw: JsonObject;
}

/** The answer to it. `remember` only as `choices` offers it. */
export type Decision =
  | {
      behavior: "allow";
      updatedArguments?: JsonObject;
      remember?: "session" | "always-tool" | "always-server";
    }
  | { behavior: "deny"; message?: string };

/** A server asks for input: a form (`schema`) or a page (`url`). */
export interface ElicitationQuestion {
  id: string;
  server: string;
  mode: "form" | "url" | (string & {});
  message: string;
  schema: JsonObject | undefined;
  url: string | undefined;
  elicitationId: string | undefined;
  title: string | undefined;
  agent: string | undefined;
  /** The question as it came. */
  raw: JsonObject;
}

/** The answer to it. */
export type ElicitationAnswer =
  { action: "accept"; content?: JsonObject } | { action: "decline" } | { action: "cancel" };

/** What a callback gets beside its question. */
export interface QuestionOptions {
  /** Aborted when the answer is not wanted any more. */
  signal: AbortSignal;
}

export type CanUseTool = (
  question: PermissionQuestion,
  options: QuestionOptions,
) => Decision | Promise<Decision>;

export type OnElicitation = (
  question: ElicitationQuestion,
  options: QuestionOptions,
) => ElicitationAnswer | Promise<ElicitationAnswer>;

type Complain = (words: string, error?: unknown) => void;

/** Ask the program, and write what it says. */
export async function askPermission(
  callback: CanUseTool,
  raw: JsonObject,
  signal: AbortSignal,
  complain: Complain,
): Promise<JsonObject> {
  try {
    const decision: unknown = await callback(readPermission(raw), { signal });
    if (isObject(decision) && decision["behavior"] === "allow") {
      const { updatedArguments, remember } = decision;
      return given({ behavior: "allow", updatedArguments, remember });
    }
    if (isObject(decision) && decision["behavior"] === "deny") {
      return given({ behavior: "deny", message: decision["message"] });
    }
    throw new TypeError(`canUseTool answered ${JSON.stringify(decision)}, which is no decision`);
  } catch (error) {
    if (!signal.aborted) complain("canUseTool failed; the call is refused", error);
    return { behavior: "deny", message: `canUseTool failed: ${describe(error)}` };
  }
}

/** Ask the program, and write what it says. */
export async function askElicitation(
  callback: OnElicitation,
  raw: JsonObject,
  signal: AbortSignal,
  complain: Complain,
): Promise<JsonObject> {
  try {
    const answer: unknown = await callback(readElicitation(raw), { signal });
    const action = isObject(answer) ? answer["action"] : undefined;
    if (action === "accept") return given({ action, content: object(answer)["content"] });
    if (action === "decline" || action === "cancel") return { action };
    throw new TypeError(`onElicitation answered ${JSON.stringify(answer)}, which is no answer`);
  } catch (error) {
    if (!signal.aborted) complain("onElicitation failed; the question is cancelled", error);
    return { action: "cancel" };
  }
}

function readPermission(raw: JsonObject): PermissionQuestion {
  const server = object(raw["server"]);
  const { changed, choices } = raw;
  return {
    id: text(raw["id"]) ?? "",
    server: text(server["name"]) ?? "",
    provenance: text(server["provenance"]),
    tool: text(raw["tool"]) ?? "",
    name: text(raw["name"]) ?? "",
    title: text(raw["title"]),
    description: text(raw["description"]),
    arguments: object(raw["arguments"]),
    rule: text(raw["rule"]),
    reason: text(raw["reason"]),
    changed: Array.isArray(changed) ? changed : [],
    destructive: raw["destructive"] === true,
    defaultToNo: raw["defaultToNo"] === true,
    agent: text(raw["agent"]),
    choices: Array.isArray(choices) ? choices.map(String) : [],
    suggestions: rows<JsonObject>(raw["suggestions"]),
    raw,
  };
}

function readElicitation(raw: JsonObject): ElicitationQuestion {
  const { server, schema } = raw;
  return {
    id: text(raw["id"]) ?? "",
    server: text(server) ?? text(object(server)["name"]) ?? "",
    mode: text(raw["mode"]) ?? "form",
    message: text(raw["message"]) ?? "",
    schema: isObject(schema) ? schema : undefined,
    url: text(raw["url"]),
    elicitationId: text(raw["elicitationId"]),
    title: text(raw["title"]),
    agent: text(raw["agent"]),
    raw,
  };
}
