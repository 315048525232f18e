"""The servers that the documentation speaks of, by their names, over stdio or HTTP.

A call is answered with what it was called with; lists and pages are what examples ask for.
"""
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TEXT = {"type": "string"}


def tool(name, required, says=None, **schema):
    properties = {key: TEXT for key in required}
    schema = {"type": "object", "properties": properties, "required": required, **schema}
    return {"name": name, "description": says or name, "inputSchema": schema}


TOOLS = {
    "time": [tool("get_current_time", ["timezone"], "What time it is somewhere")],
    "github": [
        tool("create_issue", [], "Open an issue in a repository"),
        tool("list_issues", ["repo"], "The issues of a repository"),
    ],
    "db": [tool("query", ["sql"])],
    "files": [tool("read_text_file", ["path"])],
    "search": [tool("search", ["query"])],
    "everything": [tool("echo", ["message"])],
}
ISSUES = {"items": [{"number": 7, "title": "A slip", "state": "open"}]}
RESOURCES = ["file:///notes/today.md", "docs://guide/intro", "img://logo", "log://today"]


def answer(name, method, params):
    if method == "initialize":
        offers = {"tools": {}, "resources": {"subscribe": True}, "prompts": {}}
        return {
            "protocolVersion": "2025-11-25",
            "capabilities": offers if name in ("docs", "github") else {"tools": {}},
            "serverInfo": {"name": name, "version": "1"},
            "instructions": "Prefer `search_issues` over listing everything." if name == "github" else "",
        }
    if method == "tools/list":
        return {"tools": TOOLS.get(name, [])}
    if method == "tools/call" and params["name"] == "list_issues":
        text = {"type": "text", "text": json.dumps(ISSUES)}
        return {"content": [text], "structuredContent": ISSUES}
    if method == "tools/call" and params["name"] == "echo":
        return {"content": [{"type": "text", "text": "Echo: " + params["arguments"]["message"]}]}
    if method == "tools/call":
        said = json.dumps(params.get("arguments", {}), sort_keys=True)
        return {"content": [{"type": "text", "text": said}]}
    if method == "resources/list":
        uris = RESOURCES if name == "docs" else []
        return {"resources": [{"uri": uri, "name": uri.rsplit("/", 1)[1]} for uri in uris]}
    if method == "resources/templates/list":
        page = {"uriTemplate": "docs://page/{name}", "name": "page"}
        return {"resourceTemplates": [page] if name == "docs" else []}
    if method == "resources/read" and params["uri"].startswith("img:"):
        return {"contents": [{"uri": params["uri"], "mimeType": "image/png", "blob": "iVBORw0KGgo="}]}
    if method == "resources/read":
        return {"contents": [{"uri": params["uri"], "text": "what stands there"}]}
    if method == "resources/subscribe":
        return {}
    if method == "prompts/list":
        review = {"name": "review", "arguments": [{"name": "pr", "required": True}]}
        return {"prompts": [review] if name == "github" else []}
    if method == "prompts/get":
        text = {"type": "text", "text": "Review it."}
        return {"messages": [{"role": "user", "content": text}]}
    return None


def reply(name, message):
    result = answer(name, message["method"], message.get("params", {}))
    said = {"error": {"code": -32601, "message": "not here"}} if result is None else {"result": result}
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], **said})


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = reply("search", message).encode() if "id" in message else b""
        self.send_response(200 if body else 202)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.send_error(405)

    def log_message(self, *words):
        pass


if sys.argv[1] == "--http":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        print(reply(sys.argv[1], message), flush=True)
