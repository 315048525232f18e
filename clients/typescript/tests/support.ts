/**
 * What the tests share: a home of their own for each, and a look at what they left behind.
 *
 * Owns starting the real program (`TOOLWAY_BIN`) where it can see nothing of the person who runs
 * the tests. What is promised stands in the tests.
 */

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { setImmediate } from "node:timers/promises";

import { Toolway, type ServerDefinition, type ToolwayOptions } from "toolway";

/** A home, which must be left empty of processes. */
export class Home {
  readonly mark = `toolway-test-${randomUUID()}`;
  readonly folder = mkdtempSync(join(tmpdir(), "toolway-node-"));

  constructor(context: TestContext) {
    context.after(async () => {
      await eventually(
        () => this.processes().length === 0,
        () => this.processes().join("; "),
      );
      rmSync(this.folder, { recursive: true, force: true });
    });
  }

  /** An environment in which a test is alone. */
  env(): Record<string, string> {
    const xdg = ["CONFIG_HOME", "DATA_HOME", "STATE_HOME", "CACHE_HOME", "RUNTIME_DIR"].map(
      (name) => [`XDG_${name}`, join(this.folder, name.toLowerCase())] as const,
    );
    return {
      ...Object.fromEntries(xdg),
      HOME: this.folder,
      TOOLWAY_DAEMON: "off",
      TOOLWAY_TEST_MARK: this.mark,
    };
  }

  /** The program, in this home. */
  start(options: ToolwayOptions): Promise<Toolway> {
    return Toolway.start({ env: this.env(), cwd: this.folder, ...options });
  }

  /** A server that is a program. */
  stdio(): ServerDefinition {
    const script = new URL("./stdio-server.js", import.meta.url).pathname;
    return { command: process.execPath, args: [script, this.mark] };
  }

  /** The command lines of processes that a test caused. */
  processes(): string[] {
    const found: string[] = [];
    for (const name of readdirSync("/proc")) {
      if (!/^\d+$/.test(name) || name === String(process.pid)) continue;
      try {
        // Servers get no more of the environment than they need, but all of their words.
        const words = readFileSync(`/proc/${name}/cmdline`, "utf8");
        const all = words + readFileSync(`/proc/${name}/environ`, "utf8");
        if (all.includes(this.mark)) found.push(words.replaceAll("\0", " "));
      } catch {
        continue;
      }
    }
    return found;
  }
}

/** Wait until something holds. */
export async function eventually(
  condition: () => boolean | Promise<boolean>,
  words: () => string = () => "",
): Promise<void> {
  const end = Date.now() + 30_000;
  while (!(await condition())) {
    assert.ok(Date.now() < end, `it did not come about: ${words()}`);
    await setImmediate();
  }
}

/** Something that happens once. */
export class Signal {
  readonly happened: Promise<void>;
  tell!: () => void;

  constructor() {
    this.happened = new Promise((done) => (this.tell = done));
  }
}
