/**
 * What calls and reads give back, with what came over the wire beside it.
 *
 * Owns the kinds of content. A member that is not known here is in `raw`.
 */

import { ToolError } from "./errors.js";
import { isObject, object, rows, text, type JsonObject } from "./json.js";

/** One block of what a tool answered, as MCP has it. */
export type Content =
  | { type: "text"; text: string; [member: string]: unknown }
  | { type: "image" | "audio"; data: string; mimeType: string; [member: string]: unknown }
  | {
      type: "resource_link";
      uri: string;
      name: string;
      mimeType?: string;
      [member: string]: unknown;
    }
  | { type: "resource"; resource: ResourceContent; [member: string]: unknown };

/** The contents of a resource: `text`, or `blob` in base64. */
export interface ResourceContent {
  uri: string;
  mimeType?: string;
  text?: string;
  blob?: string;
  [member: string]: unknown;
}

/**
 * What a tool answered. A tool that says of itself that it failed is an answer too: `isError` is
 * set, and {@link CallResult.throwOnError} makes an error of it.
 */
export class CallResult<Structured = unknown> {
  constructor(
    /** The result as it came. */
    readonly raw: JsonObject,
  ) {}

  /** The blocks of content. */
  get content(): readonly Content[] {
    return rows<Content>(this.raw["content"]);
  }

  /** The structured result, if the tool gives one. */
  get structured(): Structured | undefined {
    return this.raw["structuredContent"] as Structured | undefined;
  }

  /** Whether the tool says that it failed. */
  get isError(): boolean {
    return this.raw["isError"] === true;
  }

  /** All text of the content, one block after the other. */
  get text(): string {
    const parts: string[] = [];
    for (const block of this.content) {
      const words = block.type === "resource" ? object(block.resource)["text"] : block["text"];
      if (typeof words === "string") parts.push(words);
    }
    return parts.join("\n");
  }

  /** The result's `_meta`. */
  get meta(): JsonObject {
    return object(this.raw["_meta"]);
  }

  /** This result, or a {@link ToolError} with its text where the tool failed. */
  throwOnError(): this {
    if (!this.isError) return this;
    throw new ToolError(this.text || "the tool failed without a word", {
      reason: "tool",
      data: this.raw,
    });
  }
}

/** The contents of a resource. */
export class ReadResult {
  constructor(
    /** The result as it came. */
    readonly raw: JsonObject,
  ) {}

  /** Its parts. */
  get contents(): readonly ResourceContent[] {
    return rows<ResourceContent>(this.raw["contents"]);
  }

  /** All text of it. */
  get text(): string {
    return this.contents.flatMap((part) => text(part.text) ?? []).join("\n");
  }
}

/** A prompt with its arguments filled in. */
export interface PromptResult {
  description?: string;
  messages: { role: string; content: Content }[];
  [member: string]: unknown;
}

/** How far a call has come. */
export interface Progress {
  progress: number;
  total?: number;
  message?: string;
}

/** The answer of a method, which is a prompt. */
export function readPrompt(raw: JsonObject): PromptResult {
  return { ...raw, messages: rows<PromptResult["messages"][number]>(raw["messages"]) };
}

/** A report of progress. */
export function readProgress(raw: JsonObject): Progress {
  const progress: Progress = {
    progress: typeof raw["progress"] === "number" ? raw["progress"] : 0,
  };
  if (typeof raw["total"] === "number") progress.total = raw["total"];
  if (typeof raw["message"] === "string") progress.message = raw["message"];
  return progress;
}

/** Whether a value looks like a result of MCP. */
export function isResult(value: unknown): value is JsonObject {
  return isObject(value) && Array.isArray(value["content"]);
}
