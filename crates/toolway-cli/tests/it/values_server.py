"""A server that calls everything it has by the values in a file, and takes them as arguments."""
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    VALUES = json.load(file)


def one_of(values):
    return {"type": "string", "enum": values}


def answer(method, params):
    if method == "initialize":
        return {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}, "resources": {}, "prompts": {}, "completions": {}},
            "serverInfo": {"name": "values", "version": "1"},
        }
    if method == "tools/list":
        taken = {"a": one_of(VALUES), "tilde": one_of(["~root"]), "dash": one_of(["-x"])}
        schema = {"type": "object", "properties": taken}
        return {"tools": [{"name": name, "inputSchema": schema} for name in ["t", *VALUES]]}
    if method == "resources/list":
        return {"resources": [{"uri": value, "name": value} for value in VALUES]}
    if method == "resources/templates/list":
        return {"resourceTemplates": []}
    if method == "prompts/list":
        names = [{"name": "p"}, *({"name": value} for value in VALUES)]
        return {"prompts": [{**name, "arguments": [{"name": "a"}]} for name in names]}
    if method == "completion/complete":
        start = params["argument"]["value"]
        return {"completion": {"values": [it for it in VALUES if it.startswith(start)]}}
    return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = answer(message["method"], message.get("params", {}))
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    if result is None:
        reply["error"] = {"code": -32601, "message": "not here"}
    else:
        reply["result"] = result
    print(json.dumps(reply), flush=True)
