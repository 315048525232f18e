/** A server that is a program, on version 1 of the official SDK. */

import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";

const server = new McpServer({ name: "stdio", version: "1.0.0" });
server.registerTool("pid", { description: "The id of this process" }, () => ({
  content: [{ type: "text", text: String(process.pid) }],
}));
server.registerResource("motto", "peer://motto", {}, (uri) => ({
  contents: [{ uri: uri.href, text: "one host, every server" }],
}));
server.registerPrompt("review", { argsSchema: { language: z.string() } }, ({ language }) => ({
  messages: [{ role: "user", content: { type: "text", text: `Review this ${language}.` } }],
}));
await server.connect(new StdioServerTransport());
