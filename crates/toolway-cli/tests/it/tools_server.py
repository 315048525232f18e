"""A legacy server with the tools it is told to have, and one resource.

It answers a call with what it was called with; what it says instead stands under `answer` of the tool.
"""
import json
import sys

TOOLS = json.loads(sys.argv[1])
ANSWERS = {tool["name"]: tool.pop("answer") for tool in TOOLS if "answer" in tool}


def answer(method, params):
    if method == "initialize":
        return {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}, "resources": {}},
            "serverInfo": {"name": "tools", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        name = params["name"]
        said = json.dumps({name: params.get("arguments", {})}, sort_keys=True)
        return ANSWERS.get(name, {"content": [{"type": "text", "text": said}]})
    if method == "resources/list":
        return {"resources": [{"uri": "tools://one", "name": "one"}]}
    if method == "resources/read":
        return {"contents": [{"uri": params["uri"], "text": "the only one"}]}
    return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = answer(message["method"], message.get("params", {}))
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    if result is None:
        reply["error"] = {"code": -32601, "message": "no such method"}
    else:
        reply["result"] = result
    print(json.dumps(reply), flush=True)
