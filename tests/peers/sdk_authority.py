"""A server on the official Python SDK, version 1 or 2, behind the SDK's own authorization server.

Usage: sdk_authority.py PORT [OPTIONS]   (port 0 lets the system choose; OPTIONS is a JSON object)

The SDK makes the metadata, the registration, the token and the revocation endpoint; this script
only remembers what they hand out, in memory, so that a restart forgets every client. Whoever opens
the login page is sent back at once. Prints `listening on http://127.0.0.1:PORT/mcp` on stdout once
the socket accepts connections. Options: `resource` (false: no metadata of RFC 9728, as old servers
have it), `accessSeconds`. Tools: `whoami`, `clients` (how many ever registered), `tokens` (how many
are good: access tokens, refresh tokens).
"""

import asyncio
import secrets
import time

from listening import listen, port_and_options, serve
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import (
    AuthSettings,
    ClientRegistrationOptions,
    RevocationOptions,
)
from mcp.shared.auth import OAuthToken

try:
    from mcp.server.mcpserver import MCPServer as Server
except ImportError:
    from mcp.server.fastmcp import FastMCP as Server


class Provider:
    """What the SDK asks of whoever keeps clients and tokens."""

    def __init__(self, access_seconds: int) -> None:
        self.access_seconds = access_seconds
        self.clients = {}
        self.codes = {}
        self.access = {}
        self.refresh = {}

    async def get_client(self, client_id):
        return self.clients.get(client_id)

    async def register_client(self, client_info):
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client, params):
        code = secrets.token_urlsafe(24)
        self.codes[code] = AuthorizationCode(
            code=code,
            scopes=params.scopes or ["read"],
            expires_at=time.time() + 300,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(self, client, authorization_code):
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client, authorization_code):
        del self.codes[authorization_code.code]
        return self.issue(client.client_id, authorization_code.scopes)

    async def load_refresh_token(self, client, refresh_token):
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(self, client, refresh_token, scopes):
        del self.refresh[refresh_token.token]
        return self.issue(client.client_id, scopes)

    async def load_access_token(self, token):
        found = self.access.get(token)
        return found if found and found.expires_at > time.time() else None

    async def revoke_token(self, token):
        self.access.pop(token.token, None)
        self.refresh.pop(token.token, None)

    def issue(self, client_id, scopes):
        access, refresh = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        end = int(time.time()) + self.access_seconds
        self.access[access] = AccessToken(
            token=access, client_id=client_id, scopes=scopes, expires_at=end
        )
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=client_id, scopes=scopes)
        return OAuthToken(
            access_token=access,
            token_type="Bearer",
            expires_in=self.access_seconds,
            scope=" ".join(scopes),
            refresh_token=refresh,
        )


def protected(base: str, options: dict) -> Server:
    provider = Provider(options.get("accessSeconds", 3600))
    settings = AuthSettings(
        issuer_url=base,
        resource_server_url=f"{base}/mcp" if options.get("resource", True) else None,
        validate_token_resource=False,
        client_registration_options=ClientRegistrationOptions(enabled=True),
        revocation_options=RevocationOptions(enabled=True),
        required_scopes=["read"],
    )
    server = Server("toolway-sdk-authority", auth_server_provider=provider, auth=settings)

    @server.tool(structured_output=False)
    def whoami() -> str:
        """Who asks."""
        token = get_access_token()
        return f"client={token.client_id} scope={' '.join(token.scopes)}" if token else "nobody"

    @server.tool(structured_output=False)
    def clients() -> str:
        """How many clients registered."""
        return str(len(provider.clients))

    @server.tool(structured_output=False)
    def tokens() -> str:
        """How many tokens are good."""
        return f"{len(provider.access)} {len(provider.refresh)}"

    return server


async def main(port: int, options: dict) -> None:
    listener, base = listen(port)
    app = protected(base, options).streamable_http_app()
    await serve(app, listener, f"listening on {base}/mcp")


if __name__ == "__main__":
    asyncio.run(main(*port_and_options()))
