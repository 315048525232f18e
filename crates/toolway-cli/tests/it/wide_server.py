"""A legacy server whose resources, prompts and tools have long names and many words."""
import json
import sys

WORDS = "a description that has far more words than a small terminal has columns for one row"
LONG = "x" * 60

LISTS = {
    "tools/list": {"tools": [{
        "name": "a_tool_with_quite_a_long_name",
        "description": WORDS,
        "inputSchema": {"type": "object"},
    }]},
    "resources/list": {"resources": [
        {"uri": f"wide://documents/{LONG}/1", "name": WORDS, "mimeType": "application/vnd.wide+json"},
        {"uri": "wide://2", "name": "two"},
    ]},
    "resources/templates/list": {"resourceTemplates": [
        {"uriTemplate": f"wide://{{owner}}/{LONG}/{{path}}", "name": "files", "description": WORDS},
    ]},
    "prompts/list": {"prompts": [{
        "name": "a_prompt_with_quite_a_long_name",
        "description": WORDS,
        "arguments": [{"name": f"argument_number_{i}", "required": i < 2} for i in range(6)],
    }]},
}


def answer(method):
    if method == "initialize":
        return {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
            "serverInfo": {"name": "wide", "version": "1"},
        }
    if method == "tools/call":
        return {"content": [{"type": "text", "text": "done"}]}
    return LISTS.get(method)


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = answer(message["method"])
    body = {"error": {"code": -32601, "message": "no"}} if result is None else {"result": result}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **body}), flush=True)
