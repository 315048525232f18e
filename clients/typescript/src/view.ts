/**
 * What a program and its agents share: lists, calls and reads.
 *
 * Owns how each is written and read. Which servers that meets is decided by whom it is asked of.
 */

import { ToolwayError } from "./errors.js";
import { given, rows, type JsonObject } from "./json.js";
import {
  CallResult,
  ReadResult,
  readProgress,
  readPrompt,
  type Progress,
  type PromptResult,
} from "./results.js";
import type { Prompt, Resource, ServerStatus, Tool } from "./rows.js";

/** What every request may be given. */
export interface Options {
  /** Takes the request back. */
  signal?: AbortSignal;
}

/** How a call is made. */
export interface CallOptions extends Options {
  /** Told how far the work is. */
  onProgress?: (progress: Progress) => void;
  /** Seconds. */
  timeout?: number;
  /** `false`: this program vouches for the call, and nobody is asked. */
  check?: boolean;
  results?: "raw" | "bounded";
  meta?: JsonObject;
}

/** One call of {@link View.callMany}. */
export interface Call {
  server: string;
  tool: string;
  arguments?: JsonObject;
}

/** How a request is put. */
export interface Ask extends Options {
  onProgress?: ((params: JsonObject) => void) | undefined;
  doubtful?: boolean;
}

/** Servers and their tools, as one caller sees them. */
export abstract class View {
  protected abstract ask(method: string, params: JsonObject, options?: Ask): Promise<JsonObject>;

  /** All tools, once the servers on their way have arrived or failed. */
  async tools(
    options: Options & { server?: string; search?: string; limit?: number } = {},
  ): Promise<Tool[]> {
    const { signal, ...params } = options;
    return rows<Tool>((await this.ask("toolway/tools", params, only(signal)))["tools"]);
  }

  /** All servers and where they stand, or one; with their tools where wanted. */
  async servers(
    options: Options & { server?: string; tools?: boolean } = {},
  ): Promise<ServerStatus[]> {
    const { signal, ...params } = options;
    return rows<ServerStatus>((await this.ask("toolway/servers", params, only(signal)))["servers"]);
  }

  /** Call a tool. A tool that fails is a result with `isError`. */
  async call<Structured = unknown>(
    server: string,
    tool: string,
    input: JsonObject = {},
    options: CallOptions = {},
  ): Promise<CallResult<Structured>> {
    return this.#call({ server, tool, arguments: input }, options);
  }

  /** The same by the name that models see, `mcp__files__read`. */
  async callName<Structured = unknown>(
    name: string,
    input: JsonObject = {},
    options: CallOptions = {},
  ): Promise<CallResult<Structured>> {
    return this.#call({ name, arguments: input }, options);
  }

  /** Make many calls, some at a time. One outcome for each, in their order: none hides others. */
  async callMany(
    calls: Iterable<Call>,
    options: CallOptions & { concurrency?: number } = {},
  ): Promise<(CallResult | ToolwayError)[]> {
    const { concurrency = 16, ...each } = options;
    const wanted = [...calls];
    const outcomes: (CallResult | ToolwayError)[] = [];
    let next = 0;
    const work = async () => {
      for (let index = next++; index < wanted.length; index = next++) {
        const { server, tool, arguments: input } = wanted[index]!;
        try {
          outcomes[index] = await this.call(server, tool, input, each);
        } catch (error) {
          if (!(error instanceof ToolwayError)) throw error;
          outcomes[index] = error;
        }
      }
    };
    await Promise.all(
      Array.from({ length: Math.max(1, Math.min(concurrency, wanted.length)) }, work),
    );
    return outcomes;
  }

  /** The resources that servers offer. */
  async resources(options: Options & { server?: string } = {}): Promise<Resource[]> {
    const { signal, ...params } = options;
    return rows<Resource>((await this.ask("toolway/resources", params, only(signal)))["resources"]);
  }

  /** Read a resource. */
  async read(server: string, uri: string, options: Options = {}): Promise<ReadResult> {
    return new ReadResult(await this.ask("toolway/read", { server, uri }, options));
  }

  /** The prompts that servers offer. */
  async prompts(options: Options & { server?: string } = {}): Promise<Prompt[]> {
    const { signal, ...params } = options;
    return rows<Prompt>((await this.ask("toolway/prompts", params, only(signal)))["prompts"]);
  }

  /** A prompt with its arguments filled in. */
  async prompt(
    server: string,
    prompt: string,
    input: Record<string, string> = {},
    options: Options = {},
  ): Promise<PromptResult> {
    return readPrompt(
      await this.ask("toolway/prompt", { server, prompt, arguments: input }, options),
    );
  }

  async #call<Structured>(
    params: JsonObject,
    options: CallOptions,
  ): Promise<CallResult<Structured>> {
    const { signal, onProgress, timeout, check, results, meta } = options;
    const whole = given({
      ...params,
      timeout,
      results,
      _meta: meta,
      check: check === false ? false : undefined,
    });
    const raw = await this.ask("toolway/call", whole, {
      ...only(signal),
      doubtful: true,
      onProgress:
        onProgress === undefined ? undefined : (progress) => onProgress(readProgress(progress)),
    });
    return new CallResult(raw);
  }
}

/** A signal as an option, where there is one. */
export function only(signal: AbortSignal | undefined): Options {
  return signal === undefined ? {} : { signal };
}
