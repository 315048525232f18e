/**
 * JSON-RPC over a pair of streams, in both directions.
 *
 * Owns framing, ids, cancellation and what becomes of requests when the pipe ends. Knows no method
 * by name; who starts the program, and what is said to it, is the business of others.
 */

import type { Readable, Writable } from "node:stream";

import {
  ConnectionClosed,
  InDoubt,
  InvalidRequest,
  ToolwayError,
  fromWire,
  toWire,
} from "./errors.js";
import { describe, isObject, object, type JsonObject } from "./json.js";

/** Answers a request of the other side; the signal is aborted when it is taken back. */
export type Handler = (params: JsonObject, signal: AbortSignal) => Promise<JsonObject>;

/** Thrown by a handler to answer with this JSON-RPC error. */
export class Reply extends Error {
  constructor(
    readonly code: number,
    message: string,
    readonly data?: JsonObject,
  ) {
    super(message);
  }
}

/** How a request is made. */
export interface RequestOptions {
  /** Takes the request back. */
  signal?: AbortSignal | undefined;
  /** Told how far the work is. */
  onProgress?: ((params: JsonObject) => void) | undefined;
  /** Whether it may have had an effect if the pipe ends meanwhile. */
  doubtful?: boolean;
}

interface Waiting {
  resolve(value: unknown): void;
  reject(error: unknown): void;
  doubtful: boolean;
  onProgress: ((params: JsonObject) => void) | undefined;
}

/** One side of a conversation. */
export class Pipe {
  readonly handlers = new Map<string, Handler>();
  readonly notified = new Map<string, (params: JsonObject) => void>();
  readonly #writable: Writable;
  readonly #complain: (words: string, error?: unknown) => void;
  readonly #waiting = new Map<unknown, Waiting>();
  readonly #serving = new Map<unknown, AbortController>();
  readonly #handled = new Set<Promise<void>>();
  #chunks: Buffer[] = [];
  #nextId = 1;
  #room: Promise<void> | undefined;
  #words: string | undefined;

  constructor(
    readable: Readable,
    writable: Writable,
    complain: (words: string, error?: unknown) => void,
  ) {
    this.#writable = writable;
    this.#complain = complain;
    readable.on("data", (chunk: Buffer) => this.#read(chunk));
    // Whoever reads the other side sees its end too, and tells everybody who waits.
    writable.on("error", () => {});
  }

  /** Whether nothing can be asked any more. */
  get closed(): boolean {
    return this.#words !== undefined;
  }

  /** Ask, and wait for the answer. */
  async request(
    method: string,
    params: JsonObject,
    options: RequestOptions = {},
  ): Promise<unknown> {
    const { signal } = options;
    signal?.throwIfAborted();
    // A reader which is slow holds writers up, and not this program's memory.
    while (this.#room !== undefined && this.#words === undefined) {
      await this.#room;
      signal?.throwIfAborted();
    }
    const { id, answer } = this.#ask(method, params, options);
    if (signal === undefined) return located(answer);
    let stop: (() => void) | undefined;
    const aborted = new Promise<never>((_, reject) => {
      stop = () => {
        if (this.#waiting.delete(id)) this.notify("notifications/cancelled", { requestId: id });
        reject(signal.reason);
      };
      signal.addEventListener("abort", stop, { once: true });
    });
    try {
      return await located(Promise.race([answer, aborted]));
    } finally {
      if (stop !== undefined) signal.removeEventListener("abort", stop);
    }
  }

  /** Ask at once, in the order of the calls. */
  post(method: string, params: JsonObject): Promise<unknown> {
    return this.#ask(method, params, {}).answer;
  }

  /** Say something that wants no answer. */
  notify(method: string, params: JsonObject): void {
    this.#write({ jsonrpc: "2.0", method, params });
  }

  /** Nothing comes any more: every request has its outcome now. */
  end(words: string): void {
    if (this.#words !== undefined) return;
    this.#words = words;
    for (const waiting of this.#waiting.values()) {
      waiting.reject(
        waiting.doubtful
          ? new InDoubt(`${words}; the call may have been carried out, and was not sent again`, {
              reason: "in-doubt",
            })
          : new ConnectionClosed(words, { reason: "closed" }),
      );
    }
    this.#waiting.clear();
    for (const controller of this.#serving.values()) controller.abort(new ConnectionClosed(words));
  }

  #ask(
    method: string,
    params: JsonObject,
    options: RequestOptions,
  ): { id: number; answer: Promise<unknown> } {
    if (this.#words !== undefined) throw new ConnectionClosed(this.#words, { reason: "closed" });
    const id = this.#nextId++;
    if (options.onProgress !== undefined) {
      params = { ...params, _meta: { ...object(params["_meta"]), progressToken: id } };
    }
    const line = encode({ jsonrpc: "2.0", id, method, params });
    const answer = new Promise<unknown>((resolve, reject) => {
      const { doubtful = false, onProgress } = options;
      this.#waiting.set(id, { resolve, reject, doubtful, onProgress });
    });
    // It may be given up before it is answered.
    answer.catch(() => {});
    this.#send(line);
    return { id, answer };
  }

  #write(message: JsonObject): void {
    if (this.#words === undefined) this.#send(encode(message));
  }

  #send(line: string): void {
    const { destroyed, writableEnded } = this.#writable;
    if (destroyed || writableEnded || this.#writable.write(line) || this.#room !== undefined)
      return;
    this.#room = new Promise((resolve) => {
      const done = () => {
        this.#writable.off("drain", done).off("close", done);
        this.#room = undefined;
        resolve();
      };
      this.#writable.on("drain", done).on("close", done);
    });
  }

  #read(chunk: Buffer): void {
    let start = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
      this.#chunks.push(chunk.subarray(start, end));
      const line = this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks);
      this.#chunks = [];
      start = end + 1;
      if (line.length > 0) this.#take(line.toString("utf8"));
    }
    if (start < chunk.length) this.#chunks.push(chunk.subarray(start));
  }

  #take(line: string): void {
    let message: unknown;
    try {
      message = JSON.parse(line);
    } catch {
      message = undefined;
    }
    if (!isObject(message)) {
      this.#complain(`toolway wrote a line that is no message: ${line.slice(0, 200)}`);
      return;
    }
    const { id, method } = message;
    if (typeof method === "string") {
      const params = object(message["params"]);
      if (id === undefined) this.#hear(method, params);
      else this.#serve(id, method, params);
      return;
    }
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return;
    this.#waiting.delete(id);
    if (message["error"] !== undefined) waiting.reject(fromWire(message["error"]));
    else waiting.resolve(message["result"]);
  }

  #hear(method: string, params: JsonObject): void {
    try {
      if (method === "notifications/cancelled") {
        this.#serving.get(params["requestId"])?.abort(new Reply(-32005, "taken back"));
      } else if (method === "notifications/progress") {
        this.#waiting.get(params["progressToken"])?.onProgress?.(params);
      } else {
        this.notified.get(method)?.(params);
      }
    } catch (error) {
      this.#complain("a callback of this program failed", error);
    }
  }

  #serve(id: unknown, method: string, params: JsonObject): void {
    const handler = this.handlers.get(method);
    if (handler === undefined) {
      const error = { code: -32601, message: `this program knows no method \`${method}\`` };
      this.#write({ jsonrpc: "2.0", id, error });
      return;
    }
    const controller = new AbortController();
    this.#serving.set(id, controller);
    const handled = this.#answer(id, handler, params, controller.signal).finally(() => {
      this.#serving.delete(id);
      this.#handled.delete(handled);
    });
    this.#handled.add(handled);
  }

  async #answer(
    id: unknown,
    handler: Handler,
    params: JsonObject,
    signal: AbortSignal,
  ): Promise<void> {
    let message: JsonObject;
    try {
      message = { jsonrpc: "2.0", id, result: await handler(params, signal) };
      if (!signal.aborted) this.#write(message);
    } catch (error) {
      if (signal.aborted) return;
      this.#write({ jsonrpc: "2.0", id, error: this.#failed(error) });
    }
  }

  #failed(error: unknown): JsonObject {
    if (error instanceof Reply) {
      const { code, message, data } = error;
      return data === undefined ? { code, message } : { code, message, data };
    }
    if (error instanceof ToolwayError) return toWire(error);
    this.#complain("a callback of this program failed", error);
    return { code: -32603, message: `a callback of the program failed: ${describe(error)}` };
  }
}

/** An error is made where its line is read; whoever looks at its stack wants to see who asked. */
async function located<Value>(answer: Promise<Value>): Promise<Value> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof ToolwayError) Error.captureStackTrace(error, located);
    throw error;
  }
}

function encode(message: JsonObject): string {
  try {
    return `${JSON.stringify(message)}\n`;
  } catch (error) {
    const words = `this cannot be written as JSON: ${describe(error)}`;
    throw new InvalidRequest(words, { reason: "invalid", code: -32602, cause: error });
  }
}
