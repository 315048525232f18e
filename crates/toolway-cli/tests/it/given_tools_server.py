"""A server with the tools of a file, which is read anew for every list."""
import json
import sys

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] == "initialize":
        reply["result"] = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "given", "version": "1"},
        }
    elif message["method"] == "tools/list":
        with open(sys.argv[1], encoding="utf-8") as file:
            reply["result"] = {"tools": json.load(file)}
    else:
        reply["error"] = {"code": -32601, "message": "not here"}
    print(json.dumps(reply), flush=True)
