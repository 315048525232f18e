"""A server that asks the person something at the moment it is told to, through two pipes."""
import json
import sys
import threading

SIGN, TOLD = sys.argv[1:]
calls = []


def say(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def interrupt():
    with open(SIGN, encoding="utf-8") as sign:
        sign.read()
    asked = {"type": "object", "properties": {}}
    question = {"message": "Do you like cats?", "requestedSchema": asked}
    say({"id": "question", "method": "elicitation/create", "params": question})
    # What comes back says that the question has been read.
    say({"id": "read", "method": "ping"})


def answer(method):
    if method == "initialize":
        threading.Thread(target=interrupt, daemon=True).start()
        return {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "interrupting", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}
    return {}


def finish(call, said):
    say({"id": call, "result": {"content": [{"type": "text", "text": said}]}})


said = None
for line in sys.stdin:
    message = json.loads(line)
    if message.get("id") == "read":
        with open(TOLD, "w", encoding="utf-8") as told:
            told.write("read")
    elif message.get("id") == "question":
        said = message["result"]["action"]
        for call in calls:
            finish(call, said)
    elif message.get("method") == "tools/call":
        calls.append(message["id"])
        if said is not None:
            finish(message["id"], said)
    elif "id" in message:
        say({"id": message["id"], "result": answer(message["method"])})
