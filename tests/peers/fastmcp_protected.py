"""A FastMCP 4 server that wants a token, for Toolway's tests.

Usage: fastmcp_protected.py ISSUER PORT   (0 lets the system choose)

ISSUER is an authorization server, e.g. that of `oidc_provider.mjs`, whose signed tokens are checked
with its keys; they must be for this server. FastMCP makes the challenge and serves the metadata of
RFC 9728. Prints `listening on http://127.0.0.1:PORT/mcp` on stdout once the socket accepts
connections. Tools: `whoami` (needs no scope), `change` (needs `write`).
"""

import asyncio
import json
import sys
import urllib.request

from fastmcp import FastMCP
from fastmcp.server.auth import RemoteAuthProvider, require_scopes
from fastmcp.server.auth.providers.jwt import JWTVerifier
from fastmcp.server.dependencies import get_access_token
from listening import listen, serve
from pydantic import AnyHttpUrl


def protected(issuer: str, base: str) -> FastMCP:
    with urllib.request.urlopen(f"{issuer}/.well-known/openid-configuration") as found:
        metadata = json.load(found)
    verifier = JWTVerifier(
        jwks_uri=metadata["jwks_uri"],
        issuer=issuer,
        audience=f"{base}/mcp",
        algorithm="RS256",
    )
    auth = RemoteAuthProvider(
        token_verifier=verifier,
        authorization_servers=[AnyHttpUrl(issuer)],
        base_url=base,
        scopes_supported=["openid", "offline_access", "read", "write"],
    )
    server = FastMCP(name="toolway-protected-fastmcp-peer", version="1.0.0", auth=auth)

    @server.tool
    def whoami() -> str:
        """Who asks."""
        token = get_access_token()
        subject = token.claims.get("sub") if token else None
        scope = " ".join(token.scopes) if token else ""
        client = token.client_id if token else None
        return f"subject={subject} client={client} scope={scope}"

    @server.tool(auth=require_scopes("write"))
    def change() -> str:
        """Needs more."""
        return "changed"

    return server


async def main(issuer: str, port: int) -> None:
    listener, base = listen(port)
    app = protected(issuer, base).http_app(path="/mcp")
    await serve(app, listener, f"listening on {base}/mcp")


if __name__ == "__main__":
    if len(sys.argv) != 3 or not sys.argv[2].isdigit():
        sys.exit("usage: fastmcp_protected.py ISSUER PORT")
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
