// The types of onward.v1. Written by docs/wire.py: change the types of protocol/, and run it.
// Unknown events are to be ignored: a server may be newer than these types.

/** Follow an agent, or all (`*`), those that are spawned later included. A second attach replaces the first. */
export interface AgentAttach {
  agent: string;
  /** Behind a position, from now on (`head`), or from the first event that is held. `*` takes no position. */
  from?: "head" | "start" | Position;
  /** Whether deltas are wanted. */
  deltas?: boolean;
  /** Events that are wanted; requests, resolutions and terminal events always come. `null`: all. */
  types?: string[] | null;
}

/** Follow an agent, or all of them (`*`), no longer. */
export interface AgentDetach {
  agent: string;
}

/** The agent's host crashed. */
export interface AgentFailed {
  type: "agent_failed";
  agent: string;
  error: ErrorInfo;
}

/** Events behind a position, as many as fit in a frame. */
export interface AgentFetch {
  agent: string;
  from: Position;
  /** The most events. */
  limit?: number;
}

/** One agent in a list. */
export interface AgentInfo {
  agent: string;
  name: string;
  state: "idle" | "paused" | "running" | "waiting";
  /** The run that goes on. */
  run: string | null;
  epoch: string;
  /** The last number that can be seen; 0: none yet. */
  head: number;
  /** How many questions wait. */
  open_requests: number;
}

/** The agents that the client may see. */
export type AgentList = Record<string, never>;

/** Make an agent. */
export interface AgentSpawn {
  spec: SpawnSpec;
  /** The client's key for this command: sent again with the same content, it is done once. */
  idem: string;
}

/** The agent has been made and takes runs. */
export interface AgentSpawned {
  type: "agent_spawned";
  agent: string;
  name: string;
}

/** Stop an agent: it takes no more runs, and the present one ends. */
export interface AgentStop {
  agent: string;
  /** When its run ends: at the next boundary, or at once. */
  mode?: "boundary" | "now";
  reason?: string;
}

/** The agent takes no more runs. */
export interface AgentStopped {
  type: "agent_stopped";
  agent: string;
  reason: string;
}

/** Something about the agent that a person should know and that changes nothing. */
export interface AgentWarned {
  type: "agent_warning";
  agent: string;
  code: string;
  text: string;
}

/** The agents. */
export interface Agents {
  agents: AgentInfo[];
}

/** Answer the question "may this call run?". */
export interface ApprovalDecide {
  request: string;
  /** `approve` or `deny`. An unknown word is never approval. */
  decision: string;
  /** The request's: of what the person saw. */
  digest: string;
  /** The client's key for this command: sent again with the same content, it is done once. */
  idem: string;
  /** With a refusal: the model reads it. */
  reason?: string | null;
  /** With an approval: run the call with these in place of what was shown. They must fit the tool's schema. */
  arguments?: Record<string, unknown> | null;
}

/** The question "may this call run, with exactly these arguments?": what an approval provider is given. */
export interface ApprovalRequired {
  type: "approval_required";
  run: string;
  /** Names from the root's sub-agent down to the one that speaks; empty for the root itself. */
  agent_path?: string[];
  /** Unique in the process and across restarts. */
  request: string;
  call: string;
  name: string;
  /** Validated; what is shown is what runs. */
  arguments: Record<string, unknown>;
  expires_in_seconds: number | null;
  /** Of all that a person sees: a decision that carries another one was made on a stale view. */
  digest: string;
}

/** The one answer to an `approval_required`. */
export interface ApprovalResolved {
  type: "approval_resolved";
  run: string;
  /** Names from the root's sub-agent down to the one that speaks; empty for the root itself. */
  agent_path?: string[];
  request: string;
  call: string;
  outcome: "agent_ended" | "approved" | "cancelled" | "denied" | "edited" | "failed" | "timed_out";
  by: string | null;
  reason?: string | null;
  /** What runs in place of what was shown, if the call was edited. */
  arguments?: Record<string, unknown> | null;
}

/** What the model said. */
export interface AssistantMessage {
  role: "assistant";
  parts: (TextPart | ReasoningPart | ToolCall | OpaquePart)[];
  /** Cut, lost or cancelled: the text is not the whole answer. */
  partial?: boolean;
}

/** What follows begins behind the number that was asked for, or behind `head` where there is a snapshot. */
export interface Attached {
  /** Another one than before: nothing of what was known goes on. */
  epoch: string;
  /** The last number that can be seen; 0: none yet. */
  head: number;
  /** The lowest number that can be sent. */
  oldest: number;
  /** Whether all behind the number asked for follows; if not, there is a snapshot. */
  recovered: boolean;
  /** All that wait, whatever was asked for. */
  open_requests: OpenRequest[];
  snapshot?: Snapshot | null;
}

/** The answer to an attach to `*`. */
export interface AttachedAll {
  agents: Record<string, Attached>;
}

/** A run of a sub-agent that goes on. */
export interface ChildInfo {
  run: string;
  agent_path: string[];
  state: "idle" | "paused" | "running" | "waiting";
}

/** Who a client says it is: for logs alone. */
export interface ClientInfo {
  name?: string;
  version?: string;
}

/** How a request was closed; the same as its event says. */
export interface ClosedRequest {
  outcome: "agent_ended" | "approved" | "cancelled" | "declined" | "denied" | "edited" | "failed" | "timed_out";
  /** Who decided; `null` for expiry, cancel and end. */
  by: string | null;
  /** The number of the event; `null` where the log no longer holds it. */
  seq: number | null;
}

/** A piece of visible text. */
export interface ContentDelta {
  type: "content_delta";
  run: string;
  /** Names from the root's sub-agent down to the one that speaks; empty for the root itself. */
  agent_path?: string[];
  message: string;
  text: string;
  /** How many numbers of the log it stands for. */
  n?: number;
}

/**
 * Older messages of the conversation were dropped, shortened or summarised: the run goes on with what is left.
 *
 * It comes between exchanges: no call and no request is open. Tokens are estimates of the next request as a whole.
 */
export interface ContextCompacted {
  type: "context_compacted";
  run: string;
  /** Names from the root's sub-agent down to the one that speaks; empty for the root itself. */
  agent_path?: string[];
  /** The name of the hook that did it, such as `trim` or `summarise`. */
  by: string;
  messages_before: number;
  messages_after: number;
  tokens_before: number;
  tokens_after: number;
  /** Characters of the user messages that were not there before. */
  summary_chars?: number;
  /** The server had refused the request for its length. */
  refused?: boolean;
}

/** Answer the question "go on?". */
export interface ContinuationDecide {
  request: string;
  /** `approve` or `decline`: one of the request's `decisions`. An unknown word is never approval. */
  decision: string;
  /** The request's: of what the person saw. */
  digest: string;
  /** The client's key for this command: sent again with the same content, it is done once. */
  idem: string;
  /** With an approval: what the model reads next. With a refusal: why. */
  message?: string | null;
  /** With an approval: do not run the calls that wait, all of them or those with these ids. */
  discard_tool_calls?: boolean | string[];
  /** What the model reads as the result of a call that is not run. */
  tool_message?: string | null;
  /** With an approval: how much more, in the limit's unit; `null`: the request's `default_grant`. */
  grant?: number | null;
}

/** The question "may this go on?": what a continuation provider is given, and what clients see. */
export interface ContinuationRequired {
  type: "continuation_required";
  run: string;
  /** Names from the root's sub-agent down to the one that speaks; empty for the root itself. */
  agent_path?: string[];
  /** Unique in the process and across restarts. */
  request: string;
  limit: LimitState;
  /** The window that was just filled; `null` where another limit asks. */
  max_iterations: number | null;
  /** Tool rounds over all windows. */
  total_iterations: number;
  tool_calls: PendingCall[];
  /** What the model said beside the calls. */
  text: string;
  usage: Usage;
  cost: number | null;
  elapsed_seconds: number;
  expires_in_seconds: number | null;
  /** What may be decided. */
  decisions: string[];
  /** What an approval without a grant gives, in the limit's unit. */
  default_grant: number;
  /** The most that a remote client may grant; `null`: no bound. */
  max_grant: number | null;
  on_timeout?: "approve" | "decline";
  /** Of all that a person sees: a decision that carries another one was made on a stale view. */
  digest?: string;
}

/** The one answer to a `continuation_required`. */
export interface ContinuationResolved {
  type: "continuation_resolved";
  run: string;
  /** Names from the root's sub-agent down to the one that speaks; empty for the root itself. */
  agent_path?: string[];
  request: string;
  outcome: "agent_ended" | "approved" | "cancelled" | "declined" | "failed" | "timed_out";
  /** Who decided; `null` for expiry, cancel and end. */
  by: string | null;
  message?: string | null;
  tool_message?: string | null;
  granted?: number | null;
  /** Set where an expiry counts as approval. */
  effect?: "approved" | null;
  /** Ids of the pending calls that are not run although the run goes on. */
  discarded?: string[];
}

/** What a run has used so far. */
export interface Counters {
  /** Turns of the model, re-asks and the final call included. */
  steps: number;
  /** Model calls counted against the run's account, those of its sub-agents included. */
  llm_calls: number;
  /** Tool rounds over all windows. */
  tool_iterations: number;
  /** Tool rounds in the present window. */
  window: number;
  /** Tool bodies entered. */
  tool_calls: number;
}

/** The decision counts. */
export interface Decided {
  status: "accepted";
  request: string;
  /** The command had been done already: this is its first answer. */
  replayed?: boolean;
}

/** The `data` of an application error. */
export interface ErrorData {
  /** What went wrong: a client acts on this word, never on the message. */
  code: "already_resolved" | "busy" | "draining" | "forbidden" | "idem_conflict" | "invalid_argument" | "not_found" | "overloaded" | "stale_view" | "too_large" | "unauthenticated";
  /** Whether the same command may be accepted later. */
  retryable: boolean;
  /** With `overloaded`: how long to wait. */
  retry_after_ms?: number | null;
  /** With `already_resolved`. */
  resolution?: ClosedRequest | null;
}

/** A failure as clients see it. */
export interface ErrorInfo {
  /** A stable word: the error class's name in snake case. */
  code: string;
  message: string;
}

/** The answer to what was not done; the id is null where none could be read. */
export interface ErrorMessage {
  jsonrpc: "2.0";
  id: RequestId | null;
  error: FramingError | Refusal;
}

/** Every event of this version, by its `type`. Clients ignore types that they do not know. */
export type Event = RunStarted | StepStarted | ContentDelta | HandedOff | ContextCompacted | ReasoningDelta | ToolCallDelta | ToolRequested | ToolStarted | ToolProgress | ToolFinished | HopStarted | HopFinished | Rollback | ModelRetry | Warned | StepFinished | UsageReport | MessageQueued | MessageDelivered | MessageDropped | ContinuationRequired | ContinuationResolved | ApprovalRequired | ApprovalResolved | LimitReached | Finalizing | RunPaused | RunResumed | AgentSpawned | AgentFailed | AgentStopped | AgentWarned | RunFinished | RunFailed | RunCancelled;

/** Events of one agent, without a gap between them. */
export interface Events {
  agent: string;
  epoch: string;
  /** The number of the first one. Each further number is the one before plus that event's `n` (1 where absent). */
  seq: number;
  events: LoggedEvent[];
}

export interface EventsMessage {
  jsonrpc: "2.0";
  method: "events";
  params: Events;
}

/** A page of events. */
export interface Fetched {
  epoch: string;
  /** The number of the first one. */
  seq: number;
  events: LoggedEvent[];
  /** Whether there are further ones now. */
  more: boolean;
}

/** The next model call is the final one, with tools off. */
export interface Finalizing {
  type: "finalizing";
  run: string;
  /** Names from the root's sub-agent down to the one that speaks; empty for the root itself. */
  agent_path?: string[];
  limit: LimitState;
}

/** What came is no command, or it failed on the server's side. */
export interface FramingError {
  code: -32700 | -32600 | -32601 | -32602 | -32603;
  message: string;
}

/** The run goes on with another agent's model, system, tools and settings. */
export interface HandedOff {
  type: "handed_off";
  run: string;
  /** Names from the root's sub-agent down to the one that speaks; empty for the root itself. */
  agent_path?: string[];
  agent: string;
  model: string;
}

/** The connection lives. It comes at every interval, whether anything has happened or not. */
export interface Heartbeat {
  /** The last numbers of those followed agents where they have moved: who has less for long has lost something. */
  heads: Record<string, number>;
}

export interface HeartbeatMessage {
  jsonrpc: "2.0";
  method: "heartbeat";
  params: Heartbeat;
}

/** The first command of a connection, within five seconds. */
export interface Hello {
  /** Its name and version, or its name alone. */
  client?: string | ClientInfo;
  /** Capabilities that the client would use; unknown ones are ignored. */
  want?: string[];
}

/** One HTTP request of a decode that is continued has ended. */
export interface HopFinished {
  type: "hop_finished";
  run: string;
  /** Names from the root's sub-agent down to the one that speaks; empty for the root itself. */
  agent_path?: string[];
  hop: number;
  interaction: string | null;
  status: string;
  usage: Usage;
}

/**
 * One HTTP request of a decode that is continued has begun.
 *
 * The first of a turn began with its step, unless it was known then that it would be one of several.
 */
export interface HopStarted {
  type: "hop_started";
  run: string;
  /** Names from the root's sub-agent down to the one that speaks; empty for the root itself. */
  agent_path?: string[];
  hop: number;
  strategy?: string;
}

/** A limit changes the course: directly before `continuation_required`, `finalizing` or the terminal event. */
export interface LimitReached {
  type: "limit_reached";
  run: string;
  /** Names from the root's sub-agent down to the one that speaks; empty for the root itself. */
  agent_path?: string[];
  limit: LimitState;
}

/** A limit at the moment it changed the course of a run. */
export interface LimitState {
  name: "cost" | "history_bytes" | "llm_calls" | "tool_calls" | "tool_iterations" | "total_tokens" | "wall_clock";
  max: number;
  used: number;
}

/** What an agent's log is made of. */
export type LoggedEvent = Event | Skipped;

/** One message of the conversation, by its `role`. */
export type Message = UserMessage | AssistantMessage | ToolMessage;

/** A steering message has been appended to the history. */
export interface MessageDelivered {
  type: "message_delivered";
  run: string;
  /** Names from the root's sub-agent down to the one that speaks; empty for the root itself. */
  agent_path?: string[];
  message: string;
}

/** A steering message still waited when the run ended. */
export interface MessageDropped {
  type: "message_dropped";
  run: string;
  /** Names from the root's sub-agent down to the one that speaks; empty for the root itself. */
  agent_path?: string[];
  message: string;
  reason: string;
}

/** A steering message waits for the next boundary. */
export interface MessageQueued {
  type: "message_queued";
  run: string;
  /** Names from the root's sub-agent down to the one that speaks; empty for the root itself. */
  agent_path?: string[];
  message: string;
  text: string;
}

/** The model call is tried again after `seconds`. */
export interface ModelRetry {
  type: "model_retry";
  run: string;
  /** Names from the root's sub-agent down to the one that speaks; empty for the root itself. */
  agent_path?: string[];
  attempt: number;
  seconds: number;
  reason: string;
}

/** It is done. */
export type Nothing = Record<string, never>;

/** A word about the connection itself, for a person or a log; clients do nothing for it. */
export interface Notice {
  /** A stable word. */
  code: string;
  text: string;
}

export interface NoticeMessage {
  jsonrpc: "2.0";
  method: "notice";
  params: Notice;
}

/** An item to be replayed verbatim, to the wire format that made it and to no other. */
export interface OpaquePart {
  type: "opaque";
  /** The wire format's name, such as `openai-chat`. */
  format: string;
  /** The item as JSON text. */
  data: string;
  /** The id of the call it lives and dies with, if any. */
  call?: string | null;
}

/** The question "may this call run?" as it waits: all that its event says; `expires_in_seconds` is as of now. */
export interface OpenApproval {
  kind: "approval";
  run: string;
  /** Names from the root's sub-agent down to the one that speaks; empty for the root itself. */
  agent_path: string[];
  /** Unique in the process and across restarts. */
  request: string;
  call: string;
  name: string;
  /** Validated; what is shown is what runs. */
  arguments: Record<string, unknown>;
  expires_in_seconds: number | null;
  /** Of all that a person sees: a decision that carries another one was made on a stale view. */
  digest: string;
  agent: string;
}

/** The question "go on?" as it waits: all that its event says; `expires_in_seconds` is as of now. */
export interface OpenContinuation {
  kind: "continuation";
  run: string;
  /** Names from the root's sub-agent down to the one that speaks; empty for the root itself. */
  agent_path: string[];
  /** Unique in the process and across restarts. */
  request: string;
  limit: LimitState;
  /** The window that was just filled; `null` where another limit asks. */
  max_iterations: number | null;
  /** Tool rounds over all windows. */
  total_iterations: number;
  tool_calls: PendingCall[];
  /** What the model said beside the calls. */
  text: string;
  usage: Usage;
  cost: number | null;
  elapsed_seconds: number;
  expires_in_seconds: number | null;
  /** What may be decided. */
  decisions: string[];
  /** What an approval without a grant gives, in the limit's unit. */
  default_grant: number;
  /** The most that a remote client may grant; `null`: no bound. */
  max_grant: number | null;
  on_timeout: "approve" | "decline";
  /** Of all that a person sees: a decision that carries another one was made on a stale view. */
  digest: string;
  agent: string;
}

/** Calls that wait for the results that their caller gives (`tools.submit`). */
export interface OpenPause {
  kind: "tools";
  run: string;
  /** Names from the root's sub-agent down to the one that speaks; empty for the root itself. */
  agent_path: string[];
  request: string;
  calls: PendingCall[];
  agent: string;
  /** It waits for ever. */
  expires_in_seconds: null;
}

/** What waits for somebody, by its `kind`. */
export type OpenRequest = OpenContinuation | OpenApproval | OpenPause;

/** What each command takes. */
export interface Params {
  hello: Hello;
  ping: Ping;
  /** How far the client has come: by agent, the last number applied. The map is all there is. */
  ack: Record<string, number>;
  "agent.list": AgentList;
  "agent.spawn": AgentSpawn;
  "agent.stop": AgentStop;
  "agent.attach": AgentAttach;
  "agent.detach": AgentDetach;
  "agent.fetch": AgentFetch;
  "run.start": RunStart;
  "run.cancel": RunCancel;
  "run.steer": RunSteer;
  "tools.submit": ToolsSubmit;
  "request.list": RequestList;
  "continuation.decide": ContinuationDecide;
  "approval.decide": ApprovalDecide;
}

/** A call that waits for a decision. */
export interface PendingCall {
  id: string;
  name: string;
  arguments: Record<string, unknown>;
}

/** Answered at once. */
export type Ping = Record<string, never>;

/** A place in an agent's events. */
export interface Position {
  /** Within which numbers mean something. */
  epoch: string;
  /** The last number that was applied: what is sent begins behind it. */
  seq: number;
}

/** A piece of visible reasoning. */
export interface ReasoningDelta {
  type: "reasoning_delta";
  run: string;
  /** Names from the root's sub-agent down to the one that speaks; empty for the root itself. */
  agent_path?: string[];
  message: string;
  text: string;
  n?: number;
}

/** Reasoning that the vendor shows. It is replayed only where the vendor signed it. */
export interface ReasoningPart {
  type: "reasoning";
  text: string;
  signature?: string | null;
}

/** The command was refused. */
export interface Refusal {
  code: -32010;
  message: string;
  data: ErrorData;
}

/** A command's id: its reply carries the same. */
export type RequestId = number | string;

/** All open requests that the client may see. */
export type RequestList = Record<string, never>;

/** The open requests. */
export interface Requests {
  requests: OpenRequest[];
}

/** The answer to a command that was done: the result is the command's (Results). */
export interface ResultMessage {
  jsonrpc: "2.0";
  id: RequestId;
  result: Record<string, unknown>;
}

/** What each command is answered with. */
export interface Results {
  hello: Welcome;
  ping: Nothing;
  ack: Nothing;
  "agent.list": Agents;
  "agent.spawn": Spawned;
  "agent.stop": Nothing;
  "agent.attach": Attached | AttachedAll;
  "agent.detach": Nothing;
  "agent.fetch": Fetched;
  "run.start": Started;
  "run.cancel": Nothing;
  "run.steer": Steered;
  "tools.submit": Nothing;
  "request.list": Requests;
  "continuation.decide": Decided;
  "approval.decide": Decided;
}

/** What was shown of a message beyond these marks is void: it will be sent again. */
export interface Rollback {
  type: "rollback";
  run: string;
  /** Names from the root's sub-agent down to the one that speaks; empty for the root itself. */
  agent_path?: string[];
  message: string;
  /** Characters of visible text that stand. */
  to: number;
  /** Characters of reasoning that stand. */
  reasoning_to?: number;
  /** Tool calls that stand: deltas with a smaller `index`. */
  calls_to?: number;
}

/** End a run. Of one that has ended, nothing is left to do. */
export interface RunCancel {
  run: string;
  /** `boundary`: when the present step is whole; `now`: at once, and what is in the air is lost. */
  mode?: "boundary" | "now";
  reason?: string;
}

/** The run was cancelled; `summary` is what it had come to. */
export interface RunCancelled {
  type: "run_cancelled";
  run: string;
  /** Names from the root's sub-agent down to the one that speaks; empty for the root itself. */
  agent_path?: string[];
  reason: string;
  summary: RunSummary;
}

/** The run failed; `summary` is what it had come to. */
export interface RunFailed {
  type: "run_failed";
  run: string;
  /** Names from the root's sub-agent down to the one that speaks; empty for the root itself. */
  agent_path?: string[];
  error: ErrorInfo;
  summary: RunSummary;
}

/** The run came to an end: an answer, a condition or a limit. */
export interface RunFinished {
  type: "run_finished";
  run: string;
  /** Names from the root's sub-agent down to the one that speaks; empty for the root itself. */
  agent_path?: string[];
  summary: RunSummary;
}

/** Limits for one run: they only lower what the agent has. `null`: as the agent has it. */
export interface RunLimits {
  /** Tool rounds in one window. */
  max_tool_iterations?: number | null;
  /** Model calls. */
  max_llm_calls?: number | null;
  /** Tool bodies entered. */
  max_tool_calls?: number | null;
  /** Tokens of all classes. */
  max_total_tokens?: number | null;
  /** US dollars. */
  max_cost?: number | null;
  /** Seconds of work; waits for a decision do not count. */
  wall_clock_seconds?: number | null;
}

/** The run waits for its caller to give the results of these calls: no end. */
export interface RunPaused {
  type: "run_paused";
  run: string;
  /** Names from the root's sub-agent down to the one that speaks; empty for the root itself. */
  agent_path?: string[];
  request: string;
  calls: PendingCall[];
}

/** A paused or restored run goes on, with these counters. */
export interface RunResumed {
  type: "run_resumed";
  run: string;
  /** Names from the root's sub-agent down to the one that speaks; empty for the root itself. */
  agent_path?: string[];
  counters: Counters;
}

/** Start a run. It is the agent's own and outlives the connection. */
export interface RunStart {
  agent: string;
  prompt: string;
  /** The client's key for this command: sent again with the same content, it is done once. */
  idem: string;
  /** Lower limits than the agent's. */
  limits?: RunLimits | null;
  /** What to do while the agent has a run: refuse (`busy`), or wait for its end. */
  if_busy?: "queue" | "refuse";
}

/** The first event of a run. */
export interface RunStarted {
  type: "run_started";
  run: string;
  /** Names from the root's sub-agent down to the one that speaks; empty for the root itself. */
  agent_path?: string[];
  agent: string;
  model: string;
  prompt: string;
}

/** Give a run a message: the model reads it at the next boundary. */
export interface RunSteer {
  run: string;
  text: string;
  /** The client's key for this command: sent again with the same content, it is done once. */
  idem: string;
}

/** The result without its messages and steps: what the terminal event carries. */
export interface RunSummary {
  text: string;
  answered: boolean;
  finish_reason: string;
  stopped_by: "caller" | "cancel" | "cost" | "failure" | "history_bytes" | "llm_calls" | "model" | "pending_tools" | "stop_condition" | "tool" | "tool_calls" | "tool_iterations" | "total_tokens" | "wall_clock";
  stop_reason: string | null;
  limit: LimitState | null;
  finalized: "fallback" | "model" | null;
  usage: Usage;
  context_tokens: number | null;
  cost: number | null;
  counters: Counters;
  elapsed_seconds: number;
}

/** What a server sends: one message, or several. */
export type ServerFrame = ServerMessage | ServerMessage[];

/** One message of a server. */
export type ServerMessage = ResultMessage | ErrorMessage | EventsMessage | HeartbeatMessage | NoticeMessage;

/** Stands for events that the client does not want or may not see. */
export interface Skipped {
  type: "skipped";
  /** How many numbers it stands for. */
  n: number;
}

/** An agent as it is at `head`. */
export interface Snapshot {
  state: "idle" | "paused" | "running" | "waiting";
  /** The run that goes on. */
  run: string | null;
  step_number: number;
  counters: Counters | null;
  usage: Usage | null;
  /** The last messages of the conversation, at most 100 and 64 KiB. */
  history: Message[];
  children: ChildInfo[];
}

/** A template that the host registered, and what it lets a client change: never code. */
export interface SpawnSpec {
  /** The name that it is registered by. */
  template: string;
  /** What the agent is called; `null`: as the template says. */
  name?: string | null;
  /** Settings in place of the template's; only those that it permits. */
  overrides?: Record<string, unknown>;
}

/** The agent that was made. */
export interface Spawned {
  agent: string;
  name: string;
  /** The command had been done already: this is its first answer. */
  replayed?: boolean;
}

/** The run that was started. */
export interface Started {
  run: string;
  /** Its first event comes behind this number. */
  seq: number;
  /** The command had been done already: this is its first answer. */
  replayed?: boolean;
  /** Of a command that is repeated: what has become of the run. */
  state?: "idle" | "paused" | "running" | "waiting" | "cancelled" | "ended" | "failed" | null;
}

/** The message waits for the run's next boundary: `message_queued` tells all. */
export interface Steered {
  /** The command had been done already. */
  replayed?: boolean;
}

/** The turn has been handled: its calls have their results and the exchange is stored. */
export interface StepFinished {
  type: "step_finished";
  run: string;
  /** Names from the root's sub-agent down to the one that speaks; empty for the root itself. */
  agent_path?: string[];
  step: number;
  finish_reason: string | null;
  usage: Usage;
  dropped_calls?: number;
}

/** A model call has been reserved. */
export interface StepStarted {
  type: "step_started";
  run: string;
  /** Names from the root's sub-agent down to the one that speaks; empty for the root itself. */
  agent_path?: string[];
  step: number;
  /** The final call: tools are off. */
  final?: boolean;
}

/** Visible text. */
export interface TextPart {
  type: "text";
  text: string;
}

/** The model's wish to run a tool. */
export interface ToolCall {
  type: "call";
  /** Unique in the conversation; call, result, events and requests use the same. */
  id: string;
  name: string;
  /** The text of a JSON object. What the model sent instead, if it was none, stands in `malformed`. */
  arguments: string;
  /** The raw arguments, if they were no JSON object; `arguments` is then `{}`. */
  malformed?: string | null;
  /** The vendor's own id, where it differs from `id`. */
  vendor_id?: string | null;
  /** JSON text in the arguments, where the tool's schema wants what it says, has been decoded. */
  repaired?: boolean;
}

/** A piece of a call's arguments, as raw text; the whole call comes with `tool_requested`. */
export interface ToolCallDelta {
  type: "tool_call_delta";
  run: string;
  /** Names from the root's sub-agent down to the one that speaks; empty for the root itself. */
  agent_path?: string[];
  message: string;
  index: number;
  text: string;
  name?: string;
  n?: number;
}

/** The call has its result: exactly one for each `tool_requested`. */
export interface ToolFinished {
  type: "tool_finished";
  run: string;
  /** Names from the root's sub-agent down to the one that speaks; empty for the root itself. */
  agent_path?: string[];
  call: string;
  name: string;
  status: "denied" | "discarded" | "error" | "interrupted" | "not_run" | "ok" | "timed_out";
  /** Whether the body was entered. */
  started: boolean;
  text: string;
}

/** All results of the assistant message directly before it, in call order. */
export interface ToolMessage {
  role: "tool";
  results: ToolResult[];
}

/** A word from inside a tool. */
export interface ToolProgress {
  type: "tool_progress";
  run: string;
  /** Names from the root's sub-agent down to the one that speaks; empty for the root itself. */
  agent_path?: string[];
  call: string;
  text: string;
}

/** The model asks for a tool: one event for each call that is stored, in call order, when the turn has ended. */
export interface ToolRequested {
  type: "tool_requested";
  run: string;
  /** Names from the root's sub-agent down to the one that speaks; empty for the root itself. */
  agent_path?: string[];
  call: string;
  name: string;
  /** As they are stored, and as they run unless a hook or a person changes them. */
  arguments: Record<string, unknown>;
  /** JSON text in them, where the tool's schema wants what it says, has been decoded. */
  repaired?: boolean;
}

/** The one answer to a call. */
export interface ToolResult {
  call: string;
  name: string;
  status: "denied" | "discarded" | "error" | "interrupted" | "not_run" | "ok" | "timed_out";
  text: string;
  /** Whether the tool's body was entered: only then may it have had an effect. */
  entered?: boolean;
}

/** The tool's body is entered. */
export interface ToolStarted {
  type: "tool_started";
  run: string;
  /** Names from the root's sub-agent down to the one that speaks; empty for the root itself. */
  agent_path?: string[];
  call: string;
  name: string;
}

/** Give a paused run the results of its caller's own tools. */
export interface ToolsSubmit {
  run: string;
  /** By call id; several commands may each bring some of them. */
  results: Record<string, unknown>;
}

/** Tokens of one model call, or the sum over several. `null` is unknown; a reported 0 is 0. */
export interface Usage {
  /** Input read at full price: cached tokens are not counted in it. */
  uncached_input_tokens: number | null;
  /** Input served from the provider's prompt cache. */
  cache_read_tokens: number | null;
  /** Input written to the provider's prompt cache. */
  cache_write_tokens: number | null;
  /** All output, reasoning included. */
  output_tokens: number | null;
  /** The part of `output_tokens` that was hidden reasoning. */
  reasoning_tokens: number | null;
  /** Whether every call in the sum reported its input and output. */
  complete: boolean;
}

/** The run's usage so far, when it has changed and no `step_finished` says so: a hop or a helper's call has ended. */
export interface UsageReport {
  type: "usage";
  run: string;
  /** Names from the root's sub-agent down to the one that speaks; empty for the root itself. */
  agent_path?: string[];
  usage: Usage;
  cost: number | null;
  context_tokens: number | null;
}

/** What a person, or somebody in a person's place, said. */
export interface UserMessage {
  role: "user";
  text: string;
}

/** Something that a person should know and that changes nothing. */
export interface Warned {
  type: "warning";
  run: string;
  /** Names from the root's sub-agent down to the one that speaks; empty for the root itself. */
  agent_path?: string[];
  code: string;
  text: string;
  call?: string | null;
}

/** The answer to `hello`. */
export interface Welcome {
  /** The connection's id, for logs. */
  connection: string;
  /** RFC 3339. */
  server_time: string;
  /** How often `heartbeat` comes: two that do not come mean that the connection is lost. */
  heartbeat_seconds: number;
  limits: WireLimits;
  /** What this server can do beyond this document, by name. */
  capabilities: Record<string, unknown>;
  /** Who the client is. */
  principal: string;
  /** What it holds. */
  roles: ("admin" | "decide" | "observe" | "operate")[];
}

/** What a server of `onward.v1` takes; `hello` tells it to clients. */
export interface WireLimits {
  /** The biggest command; a bigger one closes 1009. */
  message_bytes: number;
  /** The most fragments of one message; more close 1009. */
  message_fragments: number;
  /** The longest text of a person (steering, a reason): longer is `too_large`. */
  text_bytes: number;
  /** The biggest frame that the server sends. */
  frame_bytes: number;
  /** What may wait for a client before it is closed with 4008. */
  queue_bytes: number;
  /** Commands on average; one above it is `overloaded`. */
  commands_per_second: number;
  /** Commands at once. */
  commands_burst: number;
  /** The deepest JSON. */
  depth: number;
}

/** The name of a command. */
export type Method = keyof Params;

/** One command, as a client sends it. */
export type CommandOf<M extends Method> = { jsonrpc: "2.0"; id: RequestId; method: M } & (Partial<Params[M]> extends Params[M]
  ? { params?: Params[M] }
  : { params: Params[M] });

/** What a client sends: one command in each frame. */
export type ClientFrame = { [M in Method]: CommandOf<M> }[Method];

/** The answer to a command that was done. */
export interface ResultOf<M extends Method> {
  jsonrpc: "2.0";
  id: RequestId;
  result: Results[M];
}

/** The event of one type. */
export type EventOf<T extends Event["type"]> = Extract<Event, { type: T }>;

/** What an application error's `data.code` may be. */
export type ErrorWord = ErrorData["code"];
