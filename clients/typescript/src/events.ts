/**
 * What happens, as an asynchronous iterator.
 *
 * Owns the queue of each listener. One who is slow misses the oldest events and is told how many.
 */

import type { JsonObject } from "./json.js";
import type { Event } from "./rows.js";

const MOST = 4096;

/** `for await (const event of host.events())`; ends with Toolway. */
export class Events implements AsyncIterableIterator<Event> {
  readonly #gone: (events: Events) => void;
  #queue: Event[] = [];
  #missed = 0;
  #over: boolean;
  #waiting: ((result: IteratorResult<Event>) => void)[] = [];

  constructor(gone: (events: Events) => void, over: boolean) {
    this.#gone = gone;
    this.#over = over;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Event>> {
    if (this.#missed > 0) {
      const count = this.#missed;
      this.#missed = 0;
      return { done: false, value: { event: "missed", count } };
    }
    const value = this.#queue.shift();
    if (value !== undefined) return { done: false, value };
    if (this.#over) return { done: true, value: undefined };
    return new Promise((done) => this.#waiting.push(done));
  }

  /** Listen no longer. */
  async return(): Promise<IteratorResult<Event>> {
    this.#gone(this);
    this.#queue = [];
    this.#missed = 0;
    this.end();
    return { done: true, value: undefined };
  }

  /** Something happened. */
  put(raw: JsonObject): void {
    const value: Event = { ...raw, event: String(raw["event"]) };
    const waiting = this.#waiting.shift();
    if (waiting !== undefined) {
      waiting({ done: false, value });
      return;
    }
    if (this.#queue.length >= MOST) {
      this.#queue.shift();
      this.#missed += 1;
    }
    this.#queue.push(value);
  }

  /** Nothing happens any more. */
  end(): void {
    this.#over = true;
    for (const waiting of this.#waiting.splice(0)) waiting({ done: true, value: undefined });
  }
}
