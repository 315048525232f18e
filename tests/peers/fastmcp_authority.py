"""A FastMCP 4 server behind an authorization server of FastMCP's own.

Usage: fastmcp_authority.py PORT [OPTIONS]   (port 0 lets the system choose; OPTIONS is a JSON object)

Without `upstream` that is FastMCP's `InMemoryOAuthProvider`, which sends whoever opens its page back
at once. With the `upstream` issuer, e.g. that of `oidc_provider.mjs`, it is FastMCP's `OAuthProxy`: it
registers clients itself, asks for consent on a page of its own, and sends people on to the issuer,
where it is the client `proxy`. Prints `listening on http://127.0.0.1:PORT/mcp` on stdout once the
socket accepts connections. Options: `upstream`, `accessSeconds` (the proxy's tokens end when those of
its issuer do). Tools: `whoami`; without `upstream` also `clients` (how many ever registered) and
`tokens` (how many are good: access tokens, refresh tokens).
"""

import asyncio
import json
import secrets
import urllib.request

from fastmcp import FastMCP
from fastmcp.server.auth import OAuthProxy
from fastmcp.server.auth.auth import ClientRegistrationOptions, RevocationOptions
from fastmcp.server.auth.providers import in_memory
from fastmcp.server.auth.providers.jwt import JWTVerifier
from fastmcp.server.dependencies import get_access_token
from key_value.aio.stores.memory import MemoryStore
from listening import listen, port_and_options, serve


def in_memory_provider(base: str, options: dict) -> in_memory.InMemoryOAuthProvider:
    # It has no parameter for this.
    in_memory.DEFAULT_ACCESS_TOKEN_EXPIRY_SECONDS = options.get("accessSeconds", 3600)
    return in_memory.InMemoryOAuthProvider(
        base_url=base,
        client_registration_options=ClientRegistrationOptions(
            enabled=True, valid_scopes=["read"], default_scopes=["read"]
        ),
        revocation_options=RevocationOptions(enabled=True),
        required_scopes=["read"],
    )


def proxy(base: str, issuer: str) -> OAuthProxy:
    with urllib.request.urlopen(f"{issuer}/.well-known/openid-configuration") as found:
        metadata = json.load(found)
    return OAuthProxy(
        upstream_authorization_endpoint=metadata["authorization_endpoint"],
        upstream_token_endpoint=metadata["token_endpoint"],
        upstream_revocation_endpoint=metadata["revocation_endpoint"],
        upstream_client_id="proxy",
        token_endpoint_auth_method="none",
        token_verifier=JWTVerifier(
            jwks_uri=metadata["jwks_uri"],
            issuer=issuer,
            audience=f"{base}/mcp",
            algorithm="RS256",
            required_scopes=["read"],
        ),
        base_url=base,
        valid_scopes=["openid", "offline_access", "read", "write"],
        client_storage=MemoryStore(),
        jwt_signing_key=secrets.token_bytes(32),
    )


def protected(base: str, options: dict) -> FastMCP:
    upstream = options.get("upstream")
    auth = proxy(base, upstream) if upstream else in_memory_provider(base, options)
    server = FastMCP(name="toolway-fastmcp-authority", version="1.0.0", auth=auth)

    @server.tool
    def whoami() -> str:
        """Who asks."""
        token = get_access_token()
        if token is None:
            return "nobody"
        subject = token.claims.get("sub") if token.claims else None
        return f"subject={subject} client={token.client_id} scope={' '.join(token.scopes)}"

    if not upstream:

        @server.tool
        def clients() -> str:
            """How many clients registered."""
            return str(len(auth.clients))

        @server.tool
        def tokens() -> str:
            """How many tokens are good."""
            return f"{len(auth.access_tokens)} {len(auth.refresh_tokens)}"

    return server


async def main(port: int, options: dict) -> None:
    listener, base = listen(port)
    app = protected(base, options).http_app(path="/mcp")
    await serve(app, listener, f"listening on {base}/mcp")


if __name__ == "__main__":
    asyncio.run(main(*port_and_options()))
