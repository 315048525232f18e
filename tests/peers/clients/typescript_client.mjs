// A client on the official TypeScript SDK, for Toolway's tests: goes through what `toolway serve`
// offers, and prints what it saw as one JSON document.
//
// Usage: node typescript_client.mjs MODULES 1|2|2-modern TARGET
//
// MODULES is a folder with a `node_modules`. `1` and `2` are the versions of the SDK, of which the
// second speaks the legacy era unless told otherwise. TARGET is JSON, as `README.md` in the folder above says.

import { createRequire } from 'node:module';
import { resolve } from 'node:path';

const [modules, sdk, target] = process.argv.slice(2);
const require = createRequire(resolve(modules, 'package.json'));
const { url, token, command, args, env, roots, without = [] } = JSON.parse(target);
const seen = { progress: [], asked: [], changed: [] };
const heard = new Map();

/** Waits until this list was said to have changed. */
function change(list) {
  if (seen.changed.includes(list)) return Promise.resolve();
  return new Promise((resolve) => heard.set(list, resolve));
}

function changed(list) {
  seen.changed.push(list);
  heard.get(list)?.();
}

/** The SDK tells of rounds of its own too, which have no total. */
function onprogress({ progress, total }) {
  if (total !== undefined) seen.progress.push([progress, total]);
}

function answer({ params }) {
  seen.asked.push(params.message);
  return { action: 'accept', content: { word: 'yes' } };
}

const info = { name: 'toolway-typescript-client', version: '1.0.0' };
const headers = token ? { Authorization: `Bearer ${token}` } : {};

async function first() {
  const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
  const { StdioClientTransport } = require('@modelcontextprotocol/sdk/client/stdio.js');
  const { StreamableHTTPClientTransport } = require(
    '@modelcontextprotocol/sdk/client/streamableHttp.js'
  );
  const types = require('@modelcontextprotocol/sdk/types.js');
  const client = new Client(info, { capabilities: { elicitation: {} } });
  client.setRequestHandler(types.ElicitRequestSchema, answer);
  for (const [list, schema] of [
    ['tools', types.ToolListChangedNotificationSchema],
    ['prompts', types.PromptListChangedNotificationSchema],
    ['resources', types.ResourceListChangedNotificationSchema]
  ]) {
    client.setNotificationHandler(schema, () => changed(list));
  }
  const transport = url
    ? new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } })
    : new StdioClientTransport({ command, args, env });
  await client.connect(transport);
  return [client, (params, options) => client.callTool(params, undefined, options), transport];
}

async function second() {
  const { Client, StreamableHTTPClientTransport } = require('@modelcontextprotocol/client');
  const { StdioClientTransport } = require('@modelcontextprotocol/client/stdio');
  const mode = sdk === '2-modern' ? { pin: '2026-07-28' } : 'legacy';
  const onChanged = (list) => ({ autoRefresh: false, onChanged: () => changed(list) });
  const client = new Client(info, {
    capabilities: { elicitation: { form: {} }, ...(roots ? { roots: {} } : {}) },
    versionNegotiation: { mode },
    listChanged: {
      tools: onChanged('tools'),
      prompts: onChanged('prompts'),
      resources: onChanged('resources')
    }
  });
  client.setRequestHandler('elicitation/create', answer);
  if (roots) client.setRequestHandler('roots/list', () => ({ roots }));
  const transport = url
    ? new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } })
    : new StdioClientTransport({ command, args, env });
  await client.connect(transport);
  return [client, (params, options) => client.callTool(params, options), transport];
}

const [client, call, transport] = await (sdk === '1' ? first() : second());
const text = (result) => result.content.map((part) => part.text).join('');
const tool = (name, given = {}, options) => call({ name, arguments: given }, options);
const failure = async (promise) => {
  try {
    await promise;
    return null;
  } catch (error) {
    // Version 1 writes the code before it.
    const message = error.message.replace(/^MCP error -?[0-9]+: /, '');
    return { code: error.code ?? null, message };
  }
};

seen.server = client.getServerVersion().name;
seen.tools = (await client.listTools()).tools.map((it) => it.name).sort();
seen.resources = (await client.listResources()).resources.map((it) => it.uri).sort();
seen.templates = (await client.listResourceTemplates()).resourceTemplates
  .map((it) => it.uriTemplate)
  .sort();
seen.prompts = (await client.listPrompts()).prompts.map((it) => it.name).sort();
seen.echo = text(await tool('everything__echo', { message: 'hi' }));
seen.structured = (
  await tool('everything__get-structured-content', { location: 'New York' })
).structuredContent;
seen.read = (await client.readResource({ uri: 'chaos:own' })).contents;
seen.prompt = (await client.getPrompt({ name: 'chaos__greet', arguments: { who: 'Ada' } })).messages;
if (!without.includes('completion')) {
  seen.completion = (
    await client.complete({
      ref: { type: 'ref/prompt', name: 'chaos__greet' },
      argument: { name: 'who', value: 'a' }
    })
  ).completion.values;
}
seen.counted = text(
  await tool(
    'everything__trigger-long-running-operation',
    { duration: 1, steps: 2 },
    { onprogress }
  )
);
const failed = await tool('chaos__fail');
seen.failed = { isError: failed.isError, text: text(failed) };
seen.unknown = await failure(tool('chaos__no-such-tool'));
seen.elicited = text(await tool('chaos__elicit'));
const report = async () => (await tool('chaos__report')).structuredContent;
if (!without.includes('cancelling')) {
  const { calls } = await report();
  const aborted = new AbortController();
  const hanging = failure(tool('chaos__hang', {}, { signal: aborted.signal }));
  // A report is a call, too; the server has the one that hangs when there is one more.
  let reports = 1;
  while ((await report()).calls - calls === reports) reports += 1;
  aborted.abort('changed my mind');
  await hanging;
  // The server hears of it a moment later.
  do {
    seen.cancellations = (await report()).cancellations;
  } while (!seen.cancellations);
}
if (!without.includes('changes')) {
  // What was heard while servers came is not what is waited for.
  seen.changed = [];
  const wanted = ['tools', 'prompts', 'resources'].map(change);
  await tool('chaos__grow');
  await Promise.all(wanted);
  seen.changed = [...new Set(seen.changed)].sort();
  const after = (await client.listTools()).tools.map((it) => it.name);
  seen.grown = after.filter((name) => !seen.tools.includes(name));
} else delete seen.changed;
if (transport.terminateSession) await transport.terminateSession();
await client.close();
console.log(JSON.stringify(seen));
