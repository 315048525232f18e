/**
 * What can go wrong, as a small tree of errors.
 *
 * Owns how an error on the wire becomes one of them: by `data.reason`, one word that Toolway
 * promises to keep. Everything thrown by this package is a {@link ToolwayError}, but for the reason
 * of a signal that was aborted.
 */

import { isObject, object, text, type JsonObject } from "./json.js";

/** What came with an error. */
export interface ErrorDetails {
  reason?: string;
  code?: number;
  data?: JsonObject;
  cause?: unknown;
}

/** Whatever Toolway could not or would not do. */
export class ToolwayError extends Error {
  /** The word of the protocol. */
  readonly reason: string;
  /** The JSON-RPC code, where there was one. */
  readonly code: number | undefined;
  /** What came with the error. */
  readonly data: JsonObject;

  constructor(message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = new.target.name;
    this.reason = details.reason ?? "error";
    this.code = details.code;
    this.data = details.data ?? {};
  }

  /** What to do about it, where Toolway knows. */
  get hint(): string | undefined {
    return text(this.data["hint"]);
  }
}

/** Toolway could not be found or started, or is another version than this package speaks. */
export class StartError extends ToolwayError {}

/** Toolway has ended, and what was asked was not carried out, or changes nothing. */
export class ConnectionClosed extends ToolwayError {}

/** The parameters do not fit; the message says which. */
export class InvalidRequest extends ToolwayError {}

/** Nothing has that name. */
export class NotFound extends ToolwayError {}

/** No server has that name. */
export class UnknownServer extends NotFound {}

/** No tool has that name. */
export class UnknownTool extends NotFound {}

/** No agent has that name, or it has ended. */
export class UnknownAgent extends NotFound {}

/** No question with that id waits for an answer. */
export class UnknownQuestion extends NotFound {}

/** A rule, a hook, the policy or a person said no. Nothing was sent. */
export class Refused extends ToolwayError {
  /** Who said no. */
  get by(): string | undefined {
    return text(this.data["by"]);
  }
}

/** The server is not connected. Nothing was sent. */
export class Unavailable extends ToolwayError {
  /** Where the server stands. */
  get state(): string | undefined {
    return text(this.data["state"]);
  }
}

/** The server wants a login; `hint` says how. */
export class NeedsAuth extends ToolwayError {}

/** No answer in time. */
export class TimedOut extends ToolwayError {}

/** Toolway took the request back. */
export class TakenBack extends ToolwayError {}

/** The connection was lost under way: the call may have been carried out, and was not sent again. */
export class InDoubt extends ToolwayError {}

/** The server answered with an error of its own. */
export class ServerError extends ToolwayError {
  /** What the server sent along. */
  get serverData(): unknown {
    return this.data["data"];
  }
}

/** An agent could not begin; `obstacles` says which server and why. */
export class AgentError extends ToolwayError {
  /** What stood in the way, as Toolway told it. */
  get obstacles(): unknown {
    return this.data["obstacles"];
  }
}

/**
 * A tool says of itself that it failed (`isError`). Thrown by `CallResult.throwOnError`; throw it in
 * a tool of your own to have its words, and nothing else, told to the caller.
 */
export class ToolError extends ToolwayError {}

/** The other side said something that this package cannot make sense of. */
export class ProtocolError extends ToolwayError {}

const BY_REASON: Record<string, typeof ToolwayError> = {
  invalid: InvalidRequest,
  "unknown-server": UnknownServer,
  "unknown-tool": UnknownTool,
  "unknown-agent": UnknownAgent,
  "unknown-question": UnknownQuestion,
  refused: Refused,
  unavailable: Unavailable,
  "needs-auth": NeedsAuth,
  "timed-out": TimedOut,
  cancelled: TakenBack,
  "in-doubt": InDoubt,
  server: ServerError,
};

/** The error for a JSON-RPC error. */
export function fromWire(error: unknown): ToolwayError {
  if (!isObject(error)) return new ProtocolError(`an error that is no object: ${String(error)}`);
  const data = object(error["data"]);
  const reason = text(data["reason"]) ?? "error";
  const Kind =
    "obstacles" in data
      ? AgentError
      : (BY_REASON[reason] ?? (reason.startsWith("unknown-") ? NotFound : ToolwayError));
  const details: ErrorDetails = { reason, data };
  if (typeof error["code"] === "number") details.code = error["code"];
  return new Kind(text(error["message"]) ?? "an error without words", details);
}

/** One of these as a JSON-RPC error. */
export function toWire(error: ToolwayError): JsonObject {
  return {
    code: error.code ?? -32603,
    message: error.message,
    data: { ...error.data, reason: error.reason },
  };
}
