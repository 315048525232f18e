// A server on version 2 of the official TypeScript SDK that sends people to pages, for Toolway's
// tests. Speaks the legacy era on stdio, the one that has the error -32042.
//
// Usage: node pages_server.mjs MODULES
//
// MODULES is a folder with a `node_modules`; this script lies elsewhere, so it has to be told.
// Tool `visit`: answers only after a person has visited `pages` pages, which lie on this machine,
// one after the other: until then it answers -32042 with the next one. Whoever opens a page has
// dealt with it, and the client hears so by `notifications/elicitation/complete`.

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';

const [modules] = process.argv.slice(2);
if (modules === undefined) {
  console.error('usage: pages_server.mjs MODULES');
  process.exit(2);
}
const require = createRequire(resolve(modules, 'package.json'));
const { McpServer, UrlElicitationRequiredError, fromJsonSchema } = require(
  '@modelcontextprotocol/server'
);
const { StdioServerTransport } = require('@modelcontextprotocol/server/stdio');

const server = new McpServer({ name: 'toolway-pages-peer', version: '1.0.0' });

// What to tell the client when a page is opened, by the page's id.
const open = new Map();
let visited = 0;

const pages = createServer(async (request, response) => {
  const tell = open.get(request.url.slice(1));
  response.writeHead(tell === undefined ? 404 : 200).end();
  if (tell !== undefined) {
    open.delete(request.url.slice(1));
    visited += 1;
    await tell();
  }
});

server.registerTool(
  'visit',
  {
    description: 'Wants pages visited first.',
    inputSchema: fromJsonSchema({
      type: 'object',
      properties: { pages: { type: 'integer' } },
      required: ['pages']
    })
  },
  ({ pages: wanted }) => {
    if (visited >= wanted) {
      return { content: [{ type: 'text', text: `visited ${visited} of ${wanted}` }] };
    }
    const elicitationId = randomUUID();
    open.set(elicitationId, server.server.createElicitationCompletionNotifier(elicitationId));
    const url = `http://127.0.0.1:${pages.address().port}/${elicitationId}`;
    const message = `Page ${visited + 1} of ${wanted}.`;
    throw new UrlElicitationRequiredError([{ mode: 'url', url, message, elicitationId }]);
  }
);

pages.listen(0, '127.0.0.1', async () => {
  await server.connect(new StdioServerTransport());
});
// The client closes our input when it is done; pages would keep this process alive.
process.stdin.on('close', () => process.exit(0));
