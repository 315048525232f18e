/** The examples of the page about the packages, run as they stand there. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";

import { Home } from "./support.js";

const folder = process.env["TOOLWAY_EXAMPLES"] ?? "";

test("every example prints what the page says", { skip: folder === "" }, async (context) => {
  const examples = readdirSync(folder).filter((name) => name.endsWith(".ts"));
  assert.ok(examples.length > 0);
  for (const example of examples) {
    const built = new URL(`../examples/${example.replace(/\.ts$/, ".js")}`, import.meta.url)
      .pathname;
    const home = new Home(context);
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [built], {
      env: { ...process.env, ...home.env() },
      cwd: home.folder,
      timeout: 60_000,
    });
    assert.equal(stderr, "", example);
    assert.equal(
      stdout,
      readFileSync(join(folder, example.replace(/\.ts$/, ".out")), "utf8"),
      example,
    );
  }
});
