"""A legacy stdio server with the manners that its arguments name. Used by stdio.rs."""

import json
import os
import signal
import socket
import sys

MANNERS = sys.argv[1:]

# Held open for as long as the process lives: the test sees its end as the end of this stream.
if "TEST_SOCKET" in os.environ:
    LIFELINE = socket.socket(socket.AF_UNIX)
    LIFELINE.connect(os.environ["TEST_SOCKET"])

if "banner" in MANNERS:
    print("Welcome to the server!\n\n{not json", flush=True)

if "chatter" in MANNERS:
    for _ in range(2048):
        print("chatter " * 128, flush=True)

if "grumble" in MANNERS:
    print("first I grumble", file=sys.stderr, flush=True)
    print("then I grumble more", file=sys.stderr, flush=True)

if "crash" in MANNERS:
    sys.exit(3)


def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


TOOLS = [
    {"name": name, "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}
    for name in ("echo", "mute", "die", "huge")
]

UNANSWERED = 0

for line in sys.stdin:
    message = json.loads(line)
    method, number = message.get("method"), message.get("id")
    if method == "initialize":
        result = {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "py", "version": "1"},
            "instructions": os.environ.get("TEST_GREETING", ""),
        }
        if "hang" not in MANNERS:
            say({"id": number, "result": result})
    elif method == "tools/list":
        say({"id": number, "result": {"tools": TOOLS}})
    elif method == "tools/call":
        name = message["params"]["name"]
        if name == "die":
            print("I die", file=sys.stderr, flush=True)
            sys.exit(9)
        if name == "mute":
            UNANSWERED += 1
            if "mortal" in MANNERS and UNANSWERED == 1000:
                os.kill(os.getpid(), signal.SIGKILL)
        if name == "huge":
            text = "x" * int(message["params"]["arguments"]["text"])
            say({"id": number, "result": {"content": [{"type": "text", "text": text}]}})
        if name == "echo":
            text = message["params"]["arguments"]["text"]
            say({"id": number, "result": {"content": [{"type": "text", "text": text}]}})
    elif number is not None:
        if "touchy" in MANNERS:
            sys.exit(1)
        if "silent" not in MANNERS:
            say({"id": number, "error": {"code": -32601, "message": "method not found"}})
