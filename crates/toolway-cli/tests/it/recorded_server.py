"""A small server whose answers are spelled as no library of ours would spell them."""
import json
import os
import sys

TEXT = {"type": "string"}
TOOLS = [
    {"name": "echo", "inputSchema": {"type": "object", "properties": {"message": TEXT, "password": TEXT}}},
    {"name": "count", "inputSchema": {"type": "object", "properties": {"to": {"type": "integer"}}}},
    {"name": "log", "inputSchema": {"type": "object", "properties": {"message": TEXT}}},
    {"name": "fail", "inputSchema": {"type": "object"}},
    {"name": "environment", "inputSchema": {"type": "object", "properties": {"name": TEXT}}},
]


def say(text):
    print(text, flush=True)


def content(text, **more):
    # With spaces, escapes and numbers that a parser would write in other words.
    return json.dumps({"content": [{"type": "text", "text": text}], "x": 1.50, **more}, indent=None, separators=(" , ", " : "))


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    params = message.get("params", {})
    arguments = params.get("arguments", {})
    error = None
    if message["method"] == "initialize":
        result = json.dumps({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "shop", "version": "1"},
        })
    elif message["method"] == "tools/list":
        result = json.dumps({"tools": TOOLS})
    elif message["method"] != "tools/call":
        error = '{"code": -32601, "message": "not here"}'
    elif params["name"] == "count":
        token = params.get("_meta", {}).get("progressToken")
        for step in range(arguments["to"]):
            if token is not None:
                told = {"progressToken": token, "progress": step + 1, "total": arguments["to"]}
                say(json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": told}))
        result = content(f"counted to {arguments['to']}")
    elif params["name"] == "fail":
        result = content("it failed", isError=True)
    elif params["name"] == "log":
        print(arguments["message"], file=sys.stderr, flush=True)
        result = content("logged")
    elif params["name"] == "environment":
        result = content(os.environ.get(arguments["name"], "nothing"))
    else:
        result = content("Echo: " + arguments["message"])
    member = f'"error": {error}' if error else f'"result" : {result}'
    say(f'{{"jsonrpc":"2.0", "id": {json.dumps(message["id"])}, {member}}}')
