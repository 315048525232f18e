"""An authorization server of other people, for Toolway's tests: django-oauth-toolkit.

Usage: django_authority.py PORT [OPTIONS]   (port 0 lets the system choose; OPTIONS is a JSON object)

A Django project with the toolkit below `/o/`, as its tutorial has it, and its metadata at the root.
Whoever logs in sees Django's login form (`alice` and `bob`, whose password is `any`), then the
toolkit's page to consent (`allow`). Everything lies in memory. Prints one line of JSON on stdout once
the socket accepts connections: `{"issuer":…}`. Options: `accessSeconds` (3600), `registration` (true:
anybody may register a client; the toolkit has that switched off).

Known clients: `public` (no secret, redirects to loopback), `resource` (secret `resource-secret`,
introspects).
"""

import asyncio
import json

import django
from django.conf import settings
from listening import listen, port_and_options, serve

LOGIN_PAGE = '<form method="post">{% csrf_token %}{{ form }}<button type="submit">Log in</button></form>'
APPS = ["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions", "oauth2_provider"]


def configure(base: str, options: dict) -> None:
    settings.configure(
        ALLOWED_HOSTS=["127.0.0.1"],
        SECRET_KEY="only for tests",
        ROOT_URLCONF=__name__,
        INSTALLED_APPS=APPS,
        # Tables straight from the models: the history of the schema would take seconds.
        MIGRATION_MODULES={app.rpartition(".")[2]: None for app in APPS},
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.middleware.common.CommonMiddleware",
            "django.middleware.csrf.CsrfViewMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
        ],
        DATABASES={
            "default": {
                "ENGINE": "django.db.backends.sqlite3",
                # One database for all threads.
                "NAME": "file:authority?mode=memory&cache=shared",
            }
        },
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "OPTIONS": {
                    "context_processors": ["django.template.context_processors.request"],
                    "loaders": [
                        ("django.template.loaders.locmem.Loader", {"login.html": LOGIN_PAGE}),
                        "django.template.loaders.app_directories.Loader",
                    ],
                },
            }
        ],
        # Nothing here is worth the time that a slow hash takes.
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
        USE_TZ=True,
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        LOGIN_URL="/login/",
        OAUTH2_PROVIDER={
            "SCOPES": {"read": "To read", "write": "To write"},
            "DEFAULT_SCOPES": ["read"],
            "ACCESS_TOKEN_EXPIRE_SECONDS": options.get("accessSeconds", 3600),
            "DCR_ENABLED": options.get("registration", False),
            "DCR_REGISTRATION_PERMISSION_CLASSES": ("oauth2_provider.dcr.AllowAllDCRPermission",),
            "ALLOW_LOCALHOST_LOOPBACK": True,
            "OIDC_ISS_ENDPOINT": f"{base}/o",
        },
    )
    django.setup()


def fill() -> None:
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from oauth2_provider.models import Application

    call_command("migrate", run_syncdb=True, verbosity=0)
    for name in ("alice", "bob"):
        User.objects.create_user(name, password="any")
    Application.objects.create(
        client_id="public",
        client_type=Application.CLIENT_PUBLIC,
        authorization_grant_type=Application.GRANT_AUTHORIZATION_CODE,
        redirect_uris="http://localhost/callback",
    )
    Application.objects.create(
        client_id="resource",
        client_secret="resource-secret",
        client_type=Application.CLIENT_CONFIDENTIAL,
        authorization_grant_type=Application.GRANT_CLIENT_CREDENTIALS,
    )


def pages() -> list:
    from django.contrib.auth.views import LoginView
    from django.urls import include, path
    from oauth2_provider.urls import metadata_urlpatterns

    return [
        path("login/", LoginView.as_view(template_name="login.html")),
        path("o/", include("oauth2_provider.urls", namespace="oauth2_provider")),
        path("", include((metadata_urlpatterns, "metadata"))),
    ]


urlpatterns = []


async def main(port: int, options: dict) -> None:
    listener, base = listen(port)
    configure(base, options)
    await asyncio.to_thread(fill)
    urlpatterns.extend(pages())
    from django.core.asgi import get_asgi_application

    app = get_asgi_application()
    await serve(app, listener, json.dumps({"issuer": f"{base}/o"}), lifespan="off")


if __name__ == "__main__":
    asyncio.run(main(*port_and_options()))
