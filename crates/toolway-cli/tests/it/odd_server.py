"""A server whose tools have names and schemas that are hard to write down in any language."""
import json
import sys

NAMES = [
    "class", "delete", "get-sum", "getSum", "get_sum", "2fa", "größe", "日本", "", "list", "str",
    "constructor", "self", "use", "new", "__proto__", "Any", "Answer", "Option", "String",
    "x*/ } process.exit() /*", 'quote"""\\',
]
TEXT = {"type": "string"}
EVIL = '*/ } /* """ # type: ignore\n@ts-ignore\n```\nfn main() {}\n```\n    code <script> \\'


def tree(node):
    return {"$ref": "#/$defs/Node", "$defs": {"Node": node}}


def nested(depth):
    schema = TEXT
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    return schema


members = {
    name: {"type": ["string", "null"], "description": EVIL, "default": EVIL}
    for name in [*NAMES, "a b", "a-b", "a.b", "from", "int", "None", "_x", "__x", "others", "type"]
}
node = {
    "type": "object",
    "properties": {
        "left": {"$ref": "#/$defs/Node"},
        "both": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
        "maybe": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]},
        "pair": {
            "prefixItems": [{"$ref": "#/$defs/Node"}, TEXT], "minItems": 2, "items": False,
        },
    },
    "additionalProperties": True,
}
SCHEMAS = {
    "members": {"type": "object", "properties": members, "required": ["int", "a b"]},
    "tree": tree(node),
    "needed": tree({**node, "required": ["both"], "additionalProperties": False}),
    "circle": {"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}},
    "deep": nested(24),
    "values": {
        "type": "object",
        "properties": {
            "any": {"enum": ["", "a", "A", "a ", 1, 1.5, True, None, [1], {"a": 1}, 2**63]},
            "texts": {"enum": ["x", "X", "x-", "", "日本", "Self", 'a"b\\', EVIL, "\u202e"]},
            "numbers": {"enum": [1, -2, 9007199254740993]},
            "none": {"enum": []},
            "one": {"const": "only"},
            "null": {"const": None},
            "never": False,
            "open": True,
        },
        "required": ["any", "texts", "one", "null", "open"],
    },
    "either": {
        "type": "object",
        "properties": {"id": TEXT},
        "required": ["id"],
        "oneOf": [
            {"properties": {"by": {"const": "mail"}, "to": TEXT}, "required": ["by", "to"]},
            {"properties": {"by": {"const": "phone"}}, "required": ["by"]},
        ],
    },
    "parts": {"allOf": [
        {"type": "object", "properties": {"a": {"type": "number"}}},
        {"properties": {"a": {"type": "integer"}, "b": TEXT}, "required": ["a"]},
    ]},
    "map": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "integer"}}},
    "closed": {"type": "object", "properties": {}, "additionalProperties": False},
    "lists": {"type": "object", "properties": {
        "plain": {"type": "array"},
        "mixed": {"type": "array", "items": {"anyOf": [TEXT, {"type": "integer"}]}},
        "tuple": {"type": "array", "items": [TEXT, {"type": "null"}], "additionalItems": False, "minItems": 2},
    }},
}


def tools():
    for name in NAMES:
        yield {"name": name, "description": EVIL, "inputSchema": {"type": "object"}}
    for name, schema in SCHEMAS.items():
        taken = {"type": "object", **schema}
        yield {"name": name, "inputSchema": taken, "outputSchema": taken}


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] == "initialize":
        reply["result"] = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "odd", "version": "1"},
        }
    elif message["method"] == "tools/list":
        reply["result"] = {"tools": list(tools())}
    elif message["method"] == "tools/call":
        given = message["params"]
        text = json.dumps(given.get("arguments"), sort_keys=True)
        reply["result"] = {
            "content": [{"type": "text", "text": text}],
            "structuredContent": given.get("arguments"),
        }
    else:
        reply["error"] = {"code": -32601, "message": "not here"}
    print(json.dumps(reply), flush=True)
