/**
 * What Toolway tells about servers, tools and events: the rows of the wire, with their types.
 *
 * A row may carry more than is named here, and any of its members may be missing or null.
 */

import type { JsonObject } from "./json.js";

/** A tool that can be called. */
export interface Tool {
  /** As models see it: `mcp__files__read`. */
  name: string;
  server: string;
  /** As its server spells it. */
  tool: string;
  title?: string | null;
  description?: string | null;
  inputSchema: JsonObject;
  outputSchema?: JsonObject | null;
  annotations?: JsonObject | null;
  deferred?: boolean;
  provenance?: Provenance;
}

/** Where a definition came from; later versions bring more words. */
export type Provenance =
  | "sdk"
  | "dynamic"
  | "agent"
  | "plugin"
  | "user"
  | "project"
  | "local"
  | "managed"
  | "enterprise"
  | "connector"
  | "flag"
  | (string & {});

/** A server and where it stands. */
export interface ServerStatus {
  name: string;
  status: "pending" | "connected" | "failed" | "needs-auth" | "disabled" | (string & {});
  scope?: string | null;
  source?: JsonObject | null;
  provenance?: Provenance | null;
  transport?: string | null;
  era?: string | null;
  protocolVersion?: string | null;
  serverInfo?: { name: string; version: string } | null;
  error?: string | null;
  reason?: string | null;
  resting?: boolean;
  instructions?: string | null;
  toolCount?: number | null;
  tools?: Tool[];
}

/** What setting the servers of this program came to. */
export interface SetResult {
  added: string[];
  removed: string[];
  /** Names that could not be, with the reason; they stopped no other. */
  errors: Record<string, string>;
}

/** Where a login stands: a page to visit (with `code` for another device), or done. */
export interface Login {
  url?: string | null;
  code?: string | null;
  loggedIn?: boolean | null;
}

/** What a yes would cover. `digest` is what `approve` wants to see. */
export interface Approval {
  definition: unknown;
  digest: string;
  source?: unknown;
  variables?: unknown;
}

/** Something that happened: `event` is `state`, `tools-changed` and so on. */
export interface Event {
  event: string;
  server?: string | null;
  [member: string]: unknown;
}

/** A resource that a server offers. */
export interface Resource {
  uri: string;
  server?: string;
  name?: string | null;
  description?: string | null;
  mimeType?: string | null;
}

/** A prompt that a server offers. */
export interface Prompt {
  /** As models see it. */
  name: string;
  server?: string;
  /** As its server spells it, and as `prompt(server, prompt)` wants it. */
  prompt?: string;
  description?: string | null;
  arguments?: { name: string; description?: string; required?: boolean }[];
}
