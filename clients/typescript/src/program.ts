/**
 * Finding the program and running it.
 *
 * Owns the process: where it is looked for, what it is given, its last words, and its end. What is
 * said on its pipes is not its business.
 */

import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { accessSync, constants, statSync } from "node:fs";
import { delimiter, isAbsolute, join, resolve } from "node:path";

import { StartError } from "./errors.js";
import { describe } from "./json.js";

/** How long a program may take to end its servers, once it was asked to. */
const PATIENCE = 15_000;

/** The program: what was given, else `TOOLWAY_BIN`, else `toolway` on `PATH`. */
export function find(given: string | undefined): string {
  const fromEnvironment = process.env["TOOLWAY_BIN"];
  const [wanted, origin] =
    given !== undefined
      ? [given, "as given"]
      : fromEnvironment
        ? [fromEnvironment, "from TOOLWAY_BIN"]
        : ["toolway", "on PATH"];
  const endings = process.platform === "win32" ? ["", ".exe"] : [""];
  const folders =
    isAbsolute(wanted) || wanted.includes("/")
      ? [process.cwd()]
      : (process.env["PATH"] ?? "").split(delimiter);
  for (const folder of folders) {
    for (const ending of endings) {
      const path = isAbsolute(wanted) ? wanted + ending : resolve(join(folder, wanted + ending));
      if (isProgram(path)) return path;
    }
  }
  const hint = "install Toolway, set TOOLWAY_BIN or give `program`";
  throw new StartError(`no program \`${wanted}\` (${origin}): ${hint}`, {
    reason: "start",
    data: { hint },
  });
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** How it is started. */
export interface StartOptions {
  cwd: string | undefined;
  env: Readonly<Record<string, string | undefined>>;
  onLine: (line: string) => void;
}

/** A running `toolway control`. */
export class Program {
  readonly child: ChildProcessWithoutNullStreams;
  /** How it ended, once it has and everything it wrote was read. */
  readonly ended: Promise<string>;
  readonly #last: string[] = [];
  readonly #onLine: (line: string) => void;

  private constructor(child: ChildProcessWithoutNullStreams, onLine: (line: string) => void) {
    this.child = child;
    this.#onLine = onLine;
    let rest = "";
    child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop()!.slice(-65_536);
      for (const line of lines) this.#say(line);
    });
    this.ended = new Promise((done) => {
      child.once("exit", (code, signal) => {
        // What it wrote last may still be on its way; whoever else holds its pipes must not keep us.
        setTimeout(() => over(code, signal), 1000).unref();
      });
      child.once("close", (code, signal) => over(code, signal));
      const over = (code: number | null, signal: NodeJS.Signals | null) => {
        this.#say(rest);
        rest = "";
        const how =
          signal !== null ? `, killed by ${signal}` : code ? ` with exit code ${code}` : "";
        const words = this.#last.length > 0 ? `: ${this.#last.join("; ")}` : "";
        done(`toolway ended${how}${words}`);
      };
    });
  }

  /** Start it. */
  static async start(command: readonly string[], options: StartOptions): Promise<Program> {
    const [path, ...words] = command as [string, ...string[]];
    const env = Object.fromEntries(
      Object.entries({ ...process.env, ...options.env }).filter(([, value]) => value !== undefined),
    );
    const child = spawn(path, words, {
      stdio: ["pipe", "pipe", "pipe"],
      env,
      // Ctrl-C on a terminal is for this program; Toolway ends when its stdin does.
      detached: process.platform !== "win32",
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    });
    await new Promise<void>((done, fail) => {
      child.once("spawn", done);
      child.once("error", (error) =>
        fail(
          new StartError(`\`${path}\` cannot be started: ${describe(error)}`, {
            reason: "start",
            cause: error,
          }),
        ),
      );
    });
    child.on("error", () => {});
    return new Program(child, options.onLine);
  }

  /** End what we say, and bring its end about where it does not come by itself. */
  async end(): Promise<void> {
    this.child.stdin.end();
    for (const signal of ["SIGTERM", "SIGKILL", undefined] as const) {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<"late">((done) => {
        timer = setTimeout(() => done("late"), PATIENCE);
      });
      const outcome = await Promise.race([this.ended, late]);
      clearTimeout(timer);
      if (outcome !== "late") return;
      if (signal !== undefined) this.child.kill(signal);
    }
  }

  #say(line: string): void {
    const words = line.trimEnd();
    if (words === "") return;
    this.#last.push(words);
    if (this.#last.length > 20) this.#last.shift();
    this.#onLine(words);
  }
}
