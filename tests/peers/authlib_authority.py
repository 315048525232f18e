"""An authorization server of other people, for Toolway's tests: Authlib in a Flask application.

Usage: authlib_authority.py PORT [OPTIONS]   (port 0 lets the system choose; OPTIONS is a JSON object)

Authlib checks every request and makes the answers; this script has the models that it asks for, kept
in memory. It is used as it comes: `client_secret_basic` alone for renewing and revoking, redirect
addresses to the letter, and no new refresh token when one is used. Whoever logs in types a name
(`login`) on the page where they consent. Prints one line of JSON on stdout once the socket accepts
connections: `{"issuer":…}`. Options: `accessSeconds` (3600).

Known client: `resource` (secret `resource-secret`, introspects).
"""

import json
import os
import secrets
import time
from dataclasses import dataclass

# Loopback has no certificates.
os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"

from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2 import OAuth2Error
from authlib.oauth2.rfc6749 import AuthorizationCodeMixin, ClientMixin, TokenMixin, grants
from authlib.oauth2.rfc7009 import RevocationEndpoint
from authlib.oauth2.rfc7591 import ClientRegistrationEndpoint
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc7662 import IntrospectionEndpoint
from authlib.oauth2.rfc9207 import IssuerParameter
from flask import Flask, jsonify, request
from listening import listen, port_and_options
from werkzeug.serving import make_server

SCOPES = ["read", "write"]
PAGE = '<form method="post">Who are you? <input name="login"><button type="submit">Consent</button></form>'


@dataclass
class Client(ClientMixin):
    client_id: str
    client_secret: str
    metadata: dict

    def get_client_id(self):
        return self.client_id

    def get_default_redirect_uri(self):
        return None

    def get_allowed_scope(self, scope):
        return " ".join(word for word in (scope or "read").split() if word in SCOPES)

    def check_redirect_uri(self, redirect_uri):
        return redirect_uri in self.metadata.get("redirect_uris", [])

    def check_client_secret(self, client_secret):
        return secrets.compare_digest(self.client_secret, client_secret)

    def check_endpoint_auth_method(self, method, endpoint):
        return endpoint != "token" or method == self.metadata["token_endpoint_auth_method"]

    def check_response_type(self, response_type):
        return response_type in self.metadata.get("response_types", ["code"])

    def check_grant_type(self, grant_type):
        return grant_type in self.metadata.get("grant_types", ["authorization_code"])


@dataclass
class Code(AuthorizationCodeMixin):
    code: str
    client_id: str
    redirect_uri: str
    scope: str
    user: str
    resource: str | None
    code_challenge: str | None
    code_challenge_method: str | None

    def get_redirect_uri(self):
        return self.redirect_uri

    def get_scope(self):
        return self.scope


@dataclass
class Token(TokenMixin):
    access: str
    refresh: str
    client_id: str
    scope: str
    user: str
    resource: str | None
    expires_at: int
    revoked: bool = False

    def check_client(self, client):
        return self.client_id == client.client_id

    def get_scope(self):
        return self.scope

    def is_expired(self):
        return self.expires_at < time.time()

    def is_revoked(self):
        return self.revoked


clients = {
    "resource": Client("resource", "resource-secret", {"token_endpoint_auth_method": "client_secret_basic"})
}
codes: dict[str, Code] = {}
tokens: list[Token] = []


def save_token(token, made_for):
    before = made_for.authorization_code or made_for.refresh_token
    refresh = token.get("refresh_token")
    if refresh is None:
        # The one that was used is still good, and belongs to the new access token.
        refresh, before.refresh = before.refresh, ""
    tokens.append(
        Token(
            access=token["access_token"],
            refresh=refresh,
            client_id=made_for.client.client_id,
            scope=token.get("scope", ""),
            user=made_for.user,
            resource=before.resource,
            expires_at=int(time.time()) + token["expires_in"],
        )
    )


class CodeGrant(grants.AuthorizationCodeGrant):
    def save_authorization_code(self, code, request):
        data = request.payload.data
        codes[code] = Code(
            code=code,
            client_id=request.client.client_id,
            redirect_uri=request.payload.redirect_uri,
            scope=request.scope,
            user=request.user,
            resource=data.get("resource"),
            code_challenge=data.get("code_challenge"),
            code_challenge_method=data.get("code_challenge_method"),
        )

    def query_authorization_code(self, code, client):
        found = codes.get(code)
        return found if found and found.client_id == client.client_id else None

    def delete_authorization_code(self, authorization_code):
        del codes[authorization_code.code]

    def authenticate_user(self, authorization_code):
        return authorization_code.user


class RefreshGrant(grants.RefreshTokenGrant):
    def authenticate_refresh_token(self, refresh_token):
        good = (token for token in tokens if not token.revoked)
        return next((token for token in good if token.refresh == refresh_token), None)

    def authenticate_user(self, refresh_token):
        return refresh_token.user

    def revoke_old_credential(self, refresh_token):
        refresh_token.revoked = True


def token_of(text):
    return next((token for token in tokens if text and text in (token.access, token.refresh)), None)


class Revocation(RevocationEndpoint):
    def query_token(self, token_string, token_type_hint):
        return token_of(token_string)

    def revoke_token(self, token, request):
        token.revoked = True


class Introspection(IntrospectionEndpoint):
    def query_token(self, token_string, token_type_hint):
        return token_of(token_string)

    def check_permission(self, token, client, request):
        return client.client_id == "resource"

    def introspect_token(self, token):
        return {
            "client_id": token.client_id,
            "sub": token.user,
            "scope": token.scope,
            "aud": token.resource,
            "exp": token.expires_at,
        }


class Registration(ClientRegistrationEndpoint):
    def get_server_metadata(self):
        return {}

    def authenticate_token(self, request):
        return "anybody"

    def save_client(self, client_info, client_metadata, request):
        id, secret = client_info["client_id"], client_info["client_secret"]
        clients[id] = Client(id, secret, client_metadata)
        return clients[id]


class Issuer(IssuerParameter):
    def __init__(self, issuer):
        self.issuer = issuer

    def get_issuer(self):
        return self.issuer


def application(issuer: str, options: dict) -> Flask:
    app = Flask(__name__)
    seconds = options.get("accessSeconds", 3600)
    app.config["OAUTH2_REFRESH_TOKEN_GENERATOR"] = True
    app.config["OAUTH2_TOKEN_EXPIRES_IN"] = {"authorization_code": seconds, "refresh_token": seconds}
    app.config["OAUTH2_SCOPES_SUPPORTED"] = SCOPES
    server = AuthorizationServer(app, query_client=clients.get, save_token=save_token)
    server.register_grant(CodeGrant, [CodeChallenge(required=True)])
    server.register_grant(RefreshGrant)
    for endpoint in (Revocation, Introspection, Registration):
        server.register_endpoint(endpoint)
    server.register_extension(Issuer(issuer))

    @app.get("/.well-known/oauth-authorization-server")
    def metadata():
        return jsonify(
            issuer=issuer,
            authorization_endpoint=f"{issuer}/authorize",
            token_endpoint=f"{issuer}/token",
            registration_endpoint=f"{issuer}/register",
            revocation_endpoint=f"{issuer}/revoke",
            introspection_endpoint=f"{issuer}/introspect",
            scopes_supported=SCOPES,
            response_types_supported=["code"],
            grant_types_supported=["authorization_code", "refresh_token"],
            token_endpoint_auth_methods_supported=RefreshGrant.TOKEN_ENDPOINT_AUTH_METHODS,
            revocation_endpoint_auth_methods_supported=Revocation.CLIENT_AUTH_METHODS,
            introspection_endpoint_auth_methods_supported=Introspection.CLIENT_AUTH_METHODS,
            code_challenge_methods_supported=["S256"],
            authorization_response_iss_parameter_supported=True,
        )

    @app.route("/authorize", methods=["GET", "POST"])
    def authorize():
        name = request.form.get("login")
        try:
            grant = server.get_consent_grant(end_user=name)
        except OAuth2Error as error:
            return f"<p>{error.error}: {error.description}", 400
        if request.method == "GET":
            return PAGE
        return server.create_authorization_response(grant_user=name, grant=grant)

    app.post("/token", endpoint="token")(server.create_token_response)
    for path, name in (
        ("/register", Registration.ENDPOINT_NAME),
        ("/revoke", Revocation.ENDPOINT_NAME),
        ("/introspect", Introspection.ENDPOINT_NAME),
    ):
        app.post(path, endpoint=name)(lambda name=name: server.create_endpoint_response(name))
    return app


def main(port: int, options: dict) -> None:
    listener, issuer = listen(port)
    app = application(issuer, options)
    port = listener.getsockname()[1]
    server = make_server("127.0.0.1", port, app, threaded=True, fd=listener.fileno())
    print(json.dumps({"issuer": issuer}), flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main(*port_and_options())
