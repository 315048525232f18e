// An MCP server on version 2 of the official TypeScript SDK that wants a token, for Toolway's tests.
//
// Usage: node typescript_protected.mjs MODULES ISSUER jwks|introspection PORT
// (port 0 lets the system choose)
//
// MODULES is a folder with a `node_modules`; this script lies elsewhere, so it has to be told.
// ISSUER is an authorization server, e.g. that of `oidc_provider.mjs` or `django_authority.py`: its
// signed tokens are checked with its keys, opaque ones by asking it. Either way a token must be for
// this server. The SDK's own middleware makes the challenge and serves the metadata of RFC 9728.
// Prints `listening on URL` on stdout. Tools: `whoami` (needs no scope), `change` (needs `write`).

import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [modules, issuer, way, port] = process.argv.slice(2);
if (!['jwks', 'introspection'].includes(way) || !/^\d+$/.test(port)) {
  console.error('usage: typescript_protected.mjs MODULES ISSUER jwks|introspection PORT');
  process.exit(2);
}
const require = createRequire(resolve(modules, 'package.json'));
const {
  McpServer,
  OAuthError,
  OAuthErrorCode,
  createMcpHandler,
  fromJsonSchema,
  getOAuthProtectedResourceMetadataUrl,
  oauthMetadataResponse,
  requireBearerAuth,
  requireScopes,
} = require('@modelcontextprotocol/server');
const { localhostHostValidation, localhostOriginValidation, toNodeHandler } = require(
  '@modelcontextprotocol/node'
);
const { createRemoteJWKSet, jwtVerify } = await import(
  pathToFileURL(require.resolve('jose')).href
);

// Not every authorization server speaks OpenID Connect.
const { origin, pathname } = new URL(issuer);
const places = [
  `${issuer}/.well-known/openid-configuration`,
  `${origin}/.well-known/oauth-authorization-server${pathname === '/' ? '' : pathname}`,
];
const answers = await Promise.all(places.map((place) => fetch(place)));
const oauthMetadata = await answers.find((answer) => answer.ok).json();
const keys = way === 'jwks' ? createRemoteJWKSet(new URL(oauthMetadata.jwks_uri)) : undefined;

async function claimsOf(token) {
  if (way === 'jwks') {
    const { payload } = await jwtVerify(token, keys, { issuer });
    return payload;
  }
  const answer = await fetch(oauthMetadata.introspection_endpoint, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa('resource:resource-secret')}` },
    body: new URLSearchParams({ token }),
  });
  return answer.json();
}

const verifier = {
  async verifyAccessToken(token) {
    const claims = await claimsOf(token).catch(() => ({ active: false }));
    if (claims.active === false) {
      throw new OAuthError(OAuthErrorCode.InvalidToken, 'the token is not good');
    }
    const audience = [claims.aud].flat()[0];
    return {
      token,
      clientId: claims.client_id,
      scopes: (claims.scope ?? '').split(' ').filter(Boolean),
      expiresAt: claims.exp,
      resource: audience && URL.canParse(audience) ? new URL(audience) : undefined,
      extra: { subject: claims.sub ?? claims.username ?? claims.client_id },
    };
  },
};

const text = (words) => ({ content: [{ type: 'text', text: words }] });

function makeServer() {
  const server = new McpServer({ name: 'toolway-protected-peer', version: '1.0.0' });
  const inputSchema = fromJsonSchema({ type: 'object', properties: {} });
  server.registerTool('whoami', { description: 'Who asks.', inputSchema }, (_input, context) => {
    const { clientId, extra, scopes } = context.http.authInfo;
    return text(`subject=${extra.subject} client=${clientId} scope=${scopes.join(' ')}`);
  });
  server.registerTool(
    'change',
    { description: 'Needs more.', inputSchema, scopeChallenge: requireScopes('write') },
    () => text('changed')
  );
  return server;
}

const validHost = localhostHostValidation();
const validOrigin = localhostOriginValidation();
const listener = createServer();
await new Promise((done) => listener.listen(Number(port), '127.0.0.1', done));
const resource = new URL(`http://127.0.0.1:${listener.address().port}/mcp`);
const metadata = {
  oauthMetadata,
  resourceServerUrl: resource,
  scopesSupported: oauthMetadata.scopes_supported,
  dangerouslyAllowInsecureIssuerUrl: true,
};
const gate = requireBearerAuth({
  verifier,
  expectedResource: resource,
  resourceMetadataUrl: getOAuthProtectedResourceMetadataUrl(resource),
});
const handler = createMcpHandler(makeServer, { legacy: 'stateless' });
const handle = toNodeHandler({
  async fetch(request, options) {
    const document = oauthMetadataResponse(request, metadata);
    if (document) {
      return document;
    }
    const auth = await gate(request);
    return auth instanceof Response ? auth : handler.fetch(request, { ...options, authInfo: auth });
  },
});
listener.on('request', (request, response) => {
  if (validHost(request, response) && validOrigin(request, response)) {
    handle(request, response);
  }
});
console.log(`listening on ${resource}`);
