"""A legacy server with every kind of resource, prompts with arguments, and completion."""
import base64
import json
import sys

reads = 0
bare = 0


def say(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def blob(data):
    return base64.b64encode(data).decode()


CONTENTS = {
    "kit://text": [{"text": "plain \u001b[31mred"}],
    "kit://logo": [{"mimeType": "image/png", "blob": blob(b"\x89PNG-not-really")}],
    "kit://broken": [{"mimeType": "image/png", "blob": "*** no base64 ***"}],
    "kit://both": [
        {"uri": "kit://both/1", "text": "one"},
        {"uri": "kit://both/2", "mimeType": "application/x-evil;../..", "blob": blob(b"two")},
    ],
    "kit://none": [],
}


def read(uri):
    global reads, bare
    if uri == "kit://bare":
        bare += 1
        return [{"uri": uri, "text": f"bare {bare}"}]
    if uri == "kit://large":
        return [{"uri": uri, "text": "x" * 10_000}]
    if uri == "kit://half":
        return [{"uri": uri, "text": "the good part"}, {"uri": uri}]
    if uri == "kit://odd":
        return "no list"
    if uri == "kit://counter":
        reads += 1
        return [{"uri": uri, "text": f"read {reads}\n"}]
    if uri.startswith("kit://city/"):
        return [{"uri": uri, "text": f"{uri}\n"}]
    parts = CONTENTS.get(uri)
    return None if parts is None else [{"uri": uri, **part} for part in parts]


def answer(method, params):
    if method == "initialize":
        return {
            "protocolVersion": "2025-11-25",
            "capabilities": {"resources": {"subscribe": True}, "prompts": {}, "completions": {}},
            "serverInfo": {"name": "kit", "version": "1"},
        }
    if method == "resources/list":
        listed = [{"uri": uri, "name": uri[6:]} for uri in [*CONTENTS, "kit://counter"]]
        return {"resources": listed}
    if method == "resources/templates/list":
        template = {"uriTemplate": "kit://city/{name}{?lang}", "name": "city"}
        return {"resourceTemplates": [template]}
    if method == "resources/read":
        parts = read(params["uri"])
        return None if parts is None else {"contents": parts}
    if method in ("resources/subscribe", "resources/unsubscribe"):
        return {}
    if method == "prompts/list":
        names = [{"name": "what", "required": True}, {"name": "tone"}]
        return {"prompts": [{"name": "draw", "description": "Draws.", "arguments": names}]}
    if method == "prompts/get":
        image = {"type": "image", "mimeType": "image/png", "data": blob(b"123456")}
        given = params["arguments"]
        text = f"Draw {given['what']} ({given.get('tone', 'any tone')})"
        return {
            "messages": [
                {"role": "user", "content": {"type": "text", "text": text}},
                {"role": "assistant", "content": image},
            ]
        }
    if method == "completion/complete":
        start = params["argument"]["value"]
        words = ["rome", "rio de janeiro", "oslo", "ro\u202emeo"]
        return {"completion": {"values": [word for word in words if word.startswith(start)]}}
    return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method = message["method"]
    result = answer(method, message.get("params", {}))
    if result is None:
        code = -32002 if method == "resources/read" else -32601
        say({"id": message["id"], "error": {"code": code, "message": "not here"}})
        continue
    say({"id": message["id"], "result": result})
    # Each read of a counter that somebody follows makes it change once more, three times.
    uri = message.get("params", {}).get("uri")
    changes = {"kit://counter": reads, "kit://bare": bare}
    if method == "resources/read" and changes.get(uri, 3) < 3:
        changed = {"uri": uri}
        say({"method": "notifications/resources/updated", "params": changed})
