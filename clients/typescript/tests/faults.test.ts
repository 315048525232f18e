/** When something ends that should not: each has one clear outcome, and nothing stays behind. */

import assert from "node:assert/strict";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { ConnectionClosed, InDoubt, StartError, Toolway } from "toolway";

import { Home } from "./support.js";
import { calc, sleeper } from "./tools.js";

test("a program that is not there is told with what to do", async () => {
  await assert.rejects(Toolway.start({ program: "toolway-no-such" }), (error: unknown) => {
    assert.ok(error instanceof StartError);
    assert.match(error.message, /no program `toolway-no-such` \(as given\)/);
    return /TOOLWAY_BIN/.test(error.hint ?? "");
  });
});

test("a program that is not Toolway is told with its last words", async (context) => {
  const home = new Home(context);
  const script = (body: string) => {
    const path = join(home.folder, "program");
    writeFileSync(path, `#!/bin/sh\n${body}\n`);
    chmodSync(path, 0o755);
    return path;
  };
  const start = (body: string) => home.start({ program: script(body), startTimeout: 0.5 });
  await assert.rejects(
    start("echo 'no such thing' >&2; exit 3"),
    /ended with exit code 3: no such thing/,
  );
  await assert.rejects(start("exec cat"), /does not know this protocol/);
  await assert.rejects(start("exec cat >/dev/null"), /said nothing in 0.5 s/);
});

test("a call under way is in doubt when Toolway is killed", async (context) => {
  const home = new Home(context);
  const { own, began, over } = sleeper();
  const host = await home.start({ servers: { own, stdio: home.stdio() } });
  try {
    await host.call("stdio", "pid", {}, { check: false });
    const events = host.events();
    const call = host.call("own", "sleep", {}, { check: false });
    await began.happened;
    process.kill(host.pid!, "SIGKILL");
    await assert.rejects(call, (error: unknown) => {
      assert.ok(error instanceof InDoubt);
      assert.match(error.message, /killed by SIGKILL.*was not sent again/);
      return true;
    });
    await over.happened;
    for await (const event of events) assert.notEqual(event.event, "missed");
    await assert.rejects(host.tools(), ConnectionClosed);
    assert.ok(host.closed);
  } finally {
    await host.close();
  }
});

test("closing ends calls and servers", async (context) => {
  const home = new Home(context);
  const { own, began, over } = sleeper();
  const host = await home.start({ servers: { own, stdio: home.stdio() } });
  await host.call("stdio", "pid", {}, { check: false });
  assert.ok(home.processes().some((words) => words.includes("stdio-server")));
  const call = host.call("own", "sleep", {}, { check: false });
  const outcome = assert.rejects(call, InDoubt);
  await began.happened;
  await host[Symbol.asyncDispose]();
  await outcome;
  await over.happened;
  assert.deepEqual(home.processes(), []);
});

test("what is no server is told before anything is started", async (context) => {
  const home = new Home(context);
  await assert.rejects(
    home.start({ servers: { odd: { type: "sdk" } } }),
    /server `odd` has no server object/,
  );
  await assert.rejects(home.start({ servers: [calc(), calc()] }), /two servers are called `calc`/);
});
