// A server on version 1 of the official TypeScript SDK behind the SDK's own authorization server
// (`mcpAuthRouter`), for Toolway's tests.
//
// Usage: node typescript_authority.mjs MODULES PORT [OPTIONS]   (port 0 lets the system choose)
//
// MODULES is a folder with a `node_modules`; this script lies elsewhere, so it has to be told.
// The SDK makes the metadata, the registration, the token and the revocation endpoint; this script
// only remembers what they hand out, in memory. Whoever opens the login page is sent back at once.
// OPTIONS is JSON: `accessSeconds` (3600). Prints `listening on URL` on stdout once it listens.
// Tools: `whoami`, `clients` (how many ever registered), `tokens` (how many are good: access tokens,
// refresh tokens).

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';

const [modules, port, given = '{}'] = process.argv.slice(2);
if (!modules || !/^\d+$/.test(port)) {
  console.error('usage: typescript_authority.mjs MODULES PORT [OPTIONS]');
  process.exit(2);
}
const { accessSeconds = 3600 } = JSON.parse(given);
const require = createRequire(resolve(modules, 'package.json'));
const sdk = (path) => require(`@modelcontextprotocol/sdk/server/${path}`);
const express = require('express');
const { InvalidGrantError, InvalidTokenError } = sdk('auth/errors.js');
const { getOAuthProtectedResourceMetadataUrl, mcpAuthRouter } = sdk('auth/router.js');
const { requireBearerAuth } = sdk('auth/middleware/bearerAuth.js');
const { McpServer } = sdk('mcp.js');
const { StreamableHTTPServerTransport } = sdk('streamableHttp.js');

const clients = new Map();
const codes = new Map();
const access = new Map();
const refresh = new Map();

function issue(clientId, scopes, resource) {
  const [token, renewal] = [randomUUID(), randomUUID()];
  const expiresAt = Math.floor(Date.now() / 1000) + accessSeconds;
  access.set(token, { token, clientId, scopes, resource, expiresAt });
  refresh.set(renewal, { clientId, scopes, resource });
  return {
    access_token: token,
    token_type: 'Bearer',
    expires_in: accessSeconds,
    scope: scopes.join(' '),
    refresh_token: renewal,
  };
}

/** What is kept under this name for this client, taken out: it is good once. */
function taken(from, name, client) {
  const found = from.get(name);
  if (found?.clientId !== client.client_id) {
    throw new InvalidGrantError('not known, or used before');
  }
  from.delete(name);
  return found;
}

const provider = {
  clientsStore: {
    getClient: (id) => clients.get(id),
    registerClient(client) {
      clients.set(client.client_id, client);
      return client;
    },
  },
  async authorize(client, { state, scopes, codeChallenge, redirectUri, resource }, response) {
    const code = randomUUID();
    codes.set(code, {
      clientId: client.client_id,
      scopes: scopes?.length ? scopes : ['read'],
      codeChallenge,
      resource,
    });
    const back = new URL(redirectUri);
    back.searchParams.set('code', code);
    if (state) {
      back.searchParams.set('state', state);
    }
    response.redirect(back.href);
  },
  async challengeForAuthorizationCode(_client, code) {
    const found = codes.get(code);
    if (!found) {
      throw new InvalidGrantError('no such code');
    }
    return found.codeChallenge;
  },
  async exchangeAuthorizationCode(client, code) {
    const { scopes, resource } = taken(codes, code, client);
    return issue(client.client_id, scopes, resource);
  },
  async exchangeRefreshToken(client, token, scopes) {
    const before = taken(refresh, token, client);
    return issue(client.client_id, scopes ?? before.scopes, before.resource);
  },
  async verifyAccessToken(token) {
    const found = access.get(token);
    if (!found) {
      throw new InvalidTokenError('the token is not good');
    }
    return found;
  },
  async revokeToken(client, { token }) {
    for (const kept of [access, refresh]) {
      if (kept.get(token)?.clientId === client.client_id) {
        kept.delete(token);
      }
    }
  },
};

function makeServer() {
  const server = new McpServer({ name: 'toolway-typescript-authority', version: '1.0.0' });
  const tool = (name, description, words) =>
    server.registerTool(name, { description }, ({ authInfo }) => ({
      content: [{ type: 'text', text: words(authInfo) }],
    }));
  tool('whoami', 'Who asks.', ({ clientId, scopes }) => `client=${clientId} scope=${scopes.join(' ')}`);
  tool('clients', 'How many clients registered.', () => String(clients.size));
  tool('tokens', 'How many tokens are good.', () => `${access.size} ${refresh.size}`);
  return server;
}

const app = express();
const listener = createServer(app);
await new Promise((done) => listener.listen(Number(port), '127.0.0.1', done));
const issuerUrl = new URL(`http://127.0.0.1:${listener.address().port}`);
const resourceServerUrl = new URL('/mcp', issuerUrl);
app.use(mcpAuthRouter({ provider, issuerUrl, resourceServerUrl, scopesSupported: ['read'] }));
app.use(
  '/mcp',
  requireBearerAuth({
    verifier: provider,
    requiredScopes: ['read'],
    expectedResource: resourceServerUrl,
    resourceMetadataUrl: getOAuthProtectedResourceMetadataUrl(resourceServerUrl),
  })
);
app.post('/mcp', express.json(), async (request, response) => {
  // No sessions: every request has a server of its own.
  const server = makeServer();
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  response.on('close', () => server.close());
  await server.connect(transport);
  await transport.handleRequest(request, response, request.body);
});
app.all('/mcp', (_request, response) => response.status(405).set('Allow', 'POST').end());
console.log(`listening on ${resourceServerUrl}`);
