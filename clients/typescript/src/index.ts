/**
 * Use Toolway, an MCP host, from Node.js.
 *
 * What is exported here is the package; everything else may change.
 */

export type {
  SdkServer,
  SdkServerDefinition,
  ServerDefinition,
  ServerLike,
  Servers,
} from "./adapters.js";
export { Agent, type AgentOptions } from "./agent.js";
export {
  AgentError,
  ConnectionClosed,
  InDoubt,
  InvalidRequest,
  NeedsAuth,
  NotFound,
  ProtocolError,
  Refused,
  ServerError,
  StartError,
  TakenBack,
  TimedOut,
  ToolError,
  ToolwayError,
  Unavailable,
  UnknownAgent,
  UnknownQuestion,
  UnknownServer,
  UnknownTool,
} from "./errors.js";
export { Events } from "./events.js";
export type { Hook, HookEvent, HookInput, HookReply } from "./hooks.js";
export { Toolway, type ToolwayOptions } from "./host.js";
export type { JsonObject } from "./json.js";
export {
  OwnServer,
  server,
  tool,
  type ArgumentsOf,
  type FunctionTool,
  type InputSchema,
  type ServerOptions,
  type StandardSchema,
  type ToolContext,
  type ToolExtras,
} from "./own.js";
export type {
  CanUseTool,
  Decision,
  ElicitationAnswer,
  ElicitationQuestion,
  OnElicitation,
  PermissionQuestion,
} from "./questions.js";
export {
  CallResult,
  ReadResult,
  type Content,
  type Progress,
  type PromptResult,
  type ResourceContent,
} from "./results.js";
export type {
  Approval,
  Event,
  Login,
  Prompt,
  Provenance,
  Resource,
  ServerStatus,
  SetResult,
  Tool,
} from "./rows.js";
export { VERSION } from "./version.js";
export { View, type Call, type CallOptions, type Options } from "./view.js";
