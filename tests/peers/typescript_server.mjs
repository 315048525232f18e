// A server on version 2 of the official TypeScript SDK, for Toolway's tests.
//
// Usage: node typescript_server.mjs MODULES both|modern PORT   (port 0 lets the system choose)
//
// MODULES is a folder with a `node_modules`; this script lies elsewhere, so it has to be told.
// `modern` refuses whoever speaks the legacy era; `both` serves them too, without sessions.
// Prints `listening on URL` on stdout. Tools: `echo`, `add` (structured output), `count` (progress
// before each of its steps, then waits between them), `process` (which process answers), `confirm`
// (wants a person's yes before it answers), `fail` (a tool error).

import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const [modules, eras, port] = process.argv.slice(2);
if (!['both', 'modern'].includes(eras) || !/^\d+$/.test(port)) {
  console.error('usage: typescript_server.mjs MODULES both|modern PORT');
  process.exit(2);
}
const require = createRequire(resolve(modules, 'package.json'));
const { McpServer, acceptedContent, createMcpHandler, fromJsonSchema, inputRequired } = require(
  '@modelcontextprotocol/server'
);
const { localhostHostValidation, localhostOriginValidation, toNodeHandler } = require(
  '@modelcontextprotocol/node'
);

const schema = (properties) =>
  fromJsonSchema({ type: 'object', properties, required: Object.keys(properties) });
const text = (words) => ({ content: [{ type: 'text', text: words }] });

function makeServer() {
  const server = new McpServer(
    { name: 'toolway-typescript-peer', version: '1.0.0' },
    { instructions: 'A peer for tests.' }
  );
  server.registerTool(
    'echo',
    { description: 'Say it again.', inputSchema: schema({ message: { type: 'string' } }) },
    ({ message }) => text(message)
  );
  server.registerTool(
    'add',
    {
      description: 'Add two integers.',
      inputSchema: schema({ a: { type: 'integer' }, b: { type: 'integer' } }),
      outputSchema: schema({ sum: { type: 'integer' } })
    },
    ({ a, b }) => ({ ...text(String(a + b)), structuredContent: { sum: a + b } })
  );
  server.registerTool(
    'count',
    {
      description: 'Count slowly.',
      inputSchema: schema({ steps: { type: 'integer' }, milliseconds: { type: 'integer' } })
    },
    async ({ steps, milliseconds }, context) => {
      const progressToken = context.mcpReq._meta?.progressToken;
      for (let step = 1; step <= steps; step += 1) {
        if (progressToken !== undefined) {
          await context.mcpReq.notify({
            method: 'notifications/progress',
            params: { progressToken, progress: step, total: steps, message: `step ${step}` }
          });
        }
        await sleep(milliseconds);
      }
      return text(`counted to ${steps}`);
    }
  );
  server.registerTool(
    'process',
    { description: 'The process that answers.', inputSchema: schema({}) },
    () => text(String(process.pid))
  );
  const yes = schema({ confirmed: { type: 'boolean' } });
  server.registerTool(
    'confirm',
    { description: 'Wants a yes first.', inputSchema: schema({ what: { type: 'string' } }) },
    async ({ what }, context) => {
      const answer = await acceptedContent(context.mcpReq.inputResponses, 'yes', yes);
      if (answer?.confirmed !== true) {
        const ask = inputRequired.elicit({ message: `Really ${what}?`, requestedSchema: yes });
        return inputRequired({ inputRequests: { yes: ask } });
      }
      return text(`did ${what}`);
    }
  );
  server.registerTool(
    'fail',
    { description: 'Answer with a tool error.', inputSchema: schema({ reason: { type: 'string' } }) },
    ({ reason }) => ({ ...text(reason), isError: true })
  );
  return server;
}

const legacy = eras === 'modern' ? 'reject' : 'stateless';
const handle = toNodeHandler(createMcpHandler(makeServer, { legacy }));
const validHost = localhostHostValidation();
const validOrigin = localhostOriginValidation();
const listener = createServer((request, response) => {
  if (validHost(request, response) && validOrigin(request, response)) {
    handle(request, response);
  }
});
listener.listen(Number(port), '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${listener.address().port}/mcp`);
});
