// The authorization server of other people, for Toolway's tests: oidc-provider.
//
// Usage: node oidc_provider.mjs MODULES PORT [OPTIONS]   (port 0 lets the system choose)
//
// MODULES is a folder with a `node_modules`; this script lies elsewhere, so it has to be told.
// OPTIONS is JSON: `resources` (addresses that tokens may be for; every loopback address when
// missing), `accessSeconds` (3600), `opaque` (true for tokens that only introspection can read),
// `path` (of the issuer, e.g. `/tenant`; none when missing).
//
// Prints one line of JSON on stdout once it listens: `issuer`, `port`, `clients`. It offers codes
// with PKCE, refresh tokens that rotate and fall together when one is used twice, registration,
// devices, client credentials, revocation, introspection and resource indicators. Whoever logs in
// sees its development pages: any name and any password at first, then a page to consent. In a
// browser that is two forms; each has one button of type `submit`.
//
// Known clients: `public` (no secret, redirects to loopback), `proxy` (the same for
// `fastmcp_authority.py`), `robot` (client credentials, its secret marked as those of tests are),
// `resource` (secret `resource-secret`, introspects).

import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [modules, port, given = '{}'] = process.argv.slice(2);
if (!modules || !/^\d+$/.test(port)) {
  console.error('usage: oidc_provider.mjs MODULES PORT [OPTIONS]');
  process.exit(2);
}
const options = JSON.parse(given);
// It greets on stdout; the only line there is to be ours.
console.info = console.error;
console.warn = console.error;
const require = createRequire(resolve(modules, 'package.json'));
const { Provider, errors } = await import(
  pathToFileURL(require.resolve('oidc-provider')).href
);

const SCOPES = ['openid', 'offline_access', 'read', 'write'];
const loopback = /^http:\/\/(127\.0\.0\.1|localhost|\[::1\])(:\d+)?(\/|$)/;

const listener = createServer();
await new Promise((done) => listener.listen(Number(port), '127.0.0.1', done));
const path = options.path ?? '';
const issuer = `http://127.0.0.1:${listener.address().port}${path}`;

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: 'public',
      application_type: 'native',
      token_endpoint_auth_method: 'none',
      redirect_uris: ['http://127.0.0.1/callback', 'http://localhost/callback'],
      grant_types: [
        'authorization_code',
        'refresh_token',
        'urn:ietf:params:oauth:grant-type:device_code',
      ],
      response_types: ['code'],
    },
    {
      client_id: 'proxy',
      application_type: 'native',
      token_endpoint_auth_method: 'none',
      redirect_uris: ['http://127.0.0.1/auth/callback'],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
    },
    {
      client_id: 'robot',
      client_secret: 'robot-canary7Kq2Zt9wXo',
      redirect_uris: [],
      response_types: [],
      grant_types: ['client_credentials'],
    },
    {
      client_id: 'resource',
      client_secret: 'resource-secret',
      redirect_uris: [],
      response_types: [],
      grant_types: [],
    },
  ],
  scopes: SCOPES,
  claims: { openid: ['sub'] },
  findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  pkce: { required: () => true },
  // A login lasts beyond its browser session, whoever asks.
  issueRefreshToken: async (_context, client) => client.grantTypeAllowed('refresh_token'),
  expiresWithSession: async () => false,
  rotateRefreshToken: true,
  cookies: { keys: ['only for tests'] },
  features: {
    devInteractions: { enabled: true },
    registration: { enabled: true },
    deviceFlow: { enabled: true },
    clientCredentials: { enabled: true },
    revocation: { enabled: true },
    introspection: {
      enabled: true,
      allowedPolicy: async (_context, client) => client.clientId === 'resource',
    },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: async () => true,
      getResourceServerInfo: async (_context, resource) => {
        const known = options.resources?.includes(resource) ?? loopback.test(resource);
        if (!known) {
          throw new errors.InvalidTarget();
        }
        return {
          audience: resource,
          scope: SCOPES.join(' '),
          accessTokenTTL: options.accessSeconds ?? 3600,
          accessTokenFormat: options.opaque ? 'opaque' : 'jwt',
        };
      },
    },
  },
});
provider.on('server_error', (_context, error) => console.error(error));
const answer = provider.callback();
const inserted = new RegExp(`^(/\\.well-known/[^/?]+)${path}(?=$|\\?)`);
listener.on('request', (request, response) => {
  // RFC 8414 puts the issuer's path last; oidc-provider knows only the other way.
  const url = path ? request.url.replace(inserted, `${path}$1`) : request.url;
  if (!url.startsWith(path)) {
    response.writeHead(404).end();
    return;
  }
  request.originalUrl = url;
  request.url = url.slice(path.length) || '/';
  answer(request, response);
});
console.log(
  JSON.stringify({
    issuer,
    port: listener.address().port,
    clients: ['public', 'proxy', 'robot', 'resource'],
  })
);
