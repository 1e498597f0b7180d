// @ts-check
/**
 * The client of an Onward gateway, for pages and for Node: events in, decisions and commands out (`onward.v1`).
 *
 *     const onward = new Onward();                      // in a page of the gateway: its own address, its own cookie
 *     const onward = new Onward({ url, token });        // in a program
 *     for await (const item of onward.follow("*")) state = reduce(state, item, Date.now() / 1000);
 *
 * One module, no dependencies, no build. Broken connections are made again with growing random waits; events come once
 * and in order; commands without a reply are given again under the same key, and are done once.
 *
 * @import * as P from "./protocol.d.ts"
 */

export const SUBPROTOCOL = "onward.v1";
/** Stands for the close code of a connection that just broke. */
export const BROKEN = 1006;
const MOST_BARREN = 3;
/** The events of this version, by `type`. Others are passed over. */
export const EVENT_TYPES = new Set(
  `run_started step_started content_delta reasoning_delta tool_call_delta tool_requested tool_started tool_progress
  tool_finished hop_started hop_finished rollback model_retry warning step_finished usage handed_off context_compacted message_queued
  message_delivered message_dropped continuation_required continuation_resolved approval_required approval_resolved
  limit_reached finalizing run_paused run_resumed agent_spawned agent_failed agent_stopped agent_warning run_finished
  run_failed run_cancelled`.split(/\s+/),
);

/** @typedef {{ kind: "event", agent: string, epoch: string, number: number, last: number, event: P.Event }} Received */
/** @typedef {{ kind: "attached" | "reattached", agent: string, reply: P.Attached }} Attached */
/** @typedef {{ kind: "gone", agent: string }} Gone */
/** @typedef {Received | Attached | Gone} Item  What a follower gives. `reattached`: what came between is lost. */
/** @typedef {{ state: "connecting" | "live" | "over", tries: number, retryAt?: number, error?: Error }} LinkState */

/** The server refused a command: `code` is the word of the protocol (`not_found`, `stale_view`, ...). */
export class WireRefused extends Error {
  /** @param {string} code @param {string} message @param {Record<string, unknown>} data */
  constructor(code, message, data) {
    super(`${code}: ${message}`);
    this.name = "WireRefused";
    this.code = code;
    this.data = data;
  }
  get retryable() {
    return this.data.retryable === true;
  }
}

/** A command was given and no reply came: whether it was done has to be looked up. */
export class ReplyLost extends Error {
  /** @param {string} message */
  constructor(message) {
    super(message);
    this.name = "ReplyLost";
  }
}

/** The connection is over and is not made again. */
export class Disconnected extends Error {
  /** @param {string} message @param {number} code */
  constructor(message, code = BROKEN) {
    super(message);
    this.name = "Disconnected";
    this.code = code;
  }
}

/** What the server sent is not of this protocol. */
class NotOfTheWire extends Error {}

/** Whether a client that was closed with this code should try again. @param {number} code */
export function mayReconnect(code) {
  return ![1000, 1002, 1003, 1007, 1009].includes(code) && !(code >= 4500 && code < 5000);
}

/** How long to wait after so many tries that failed: anything up to a bound that doubles. @param {number} tries @param {number} chance */
export function waitSeconds(tries, chance, { first = 0.5, most = 30 } = {}) {
  return chance * Math.min(most, first * 2 ** Math.min(tries, 32));
}

/** A place in the numbered events of one agent: nothing twice, and no gap unnoticed. */
export class Cursor {
  /** @param {string} epoch @param {number} seq */
  constructor(epoch, seq) {
    this.epoch = epoch;
    this.seq = seq;
    this.duplicates = 0;
    this.skipped = 0;
    this.unknown = 0;
  }

  /**
   * The events that are new, and whether all is well: if not, what comes next is missing here.
   * @param {P.Events} events
   * @returns {[Received[], boolean]}
   */
  take({ agent, epoch, seq, events }) {
    if (epoch !== this.epoch || seq > this.seq + 1) return [[], false];
    /** @type {Received[]} */
    const fresh = [];
    let number = seq;
    for (const event of events) {
      const n = "n" in event ? (event.n ?? 1) : 1;
      if (!Number.isSafeInteger(n) || n < 1) throw new NotOfTheWire(`an event stands for ${n} numbers`);
      const last = number + n - 1;
      if (last <= this.seq) this.duplicates += n;
      else if (number <= this.seq) return [fresh, false]; // a merge that spans our place: its text cannot be parted
      else {
        this.seq = last;
        if (event.type === "skipped") this.skipped += n;
        else if (!EVENT_TYPES.has(event.type)) this.unknown += 1;
        else fresh.push({ kind: "event", agent, epoch, number, last, event });
      }
      number = last + 1;
    }
    return [fresh, true];
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// From a snapshot and the events behind it to what is shown. Pure: every change makes new objects of what it changes.

export const KEPT_RUNS = 20;
export const KEPT_WARNINGS = 50;
export const MOST_CALLS = 1024;

/** @typedef {{ text: string, reasoning: string, calls: string[], partial: boolean }} MessageView */
/** @typedef {{ name: string, arguments: Record<string, unknown>, status: string, progress: string, text: string }} ToolView */
/** @typedef {{ text: string, status: "queued" | "delivered" | "dropped" }} SteeringView */
/** @typedef {{ request: P.OpenRequest, deadline: number | null }} RequestView */
/**
 * @typedef {object} RunView
 * @property {string[]} agent_path
 * @property {string} model
 * @property {string} prompt
 * @property {"running" | "finished" | "failed" | "cancelled"} status
 * @property {number} step
 * @property {P.Usage | null} usage
 * @property {P.LimitState | null} limit
 * @property {number} compactions
 * @property {string} reason
 * @property {P.RunSummary | null} summary
 * @property {Map<string, MessageView>} messages
 * @property {Map<string, ToolView>} tools
 * @property {Map<string, SteeringView>} steering
 * @property {boolean} whole  Whether the beginning of its present message was seen.
 * @property {boolean} hops  Whether the usage of the present step was told hop by hop.
 */
/**
 * @typedef {object} ClientState
 * @property {string} agent
 * @property {string} name
 * @property {string} epoch
 * @property {number} seq
 * @property {"idle" | "running" | "waiting" | "paused" | "stopped"} status
 * @property {string | null} run
 * @property {P.Counters | null} counters
 * @property {Map<string, RunView>} runs
 * @property {Map<string, RequestView>} requests  What waits for somebody, oldest first.
 * @property {P.Message[]} history
 * @property {P.ChildInfo[]} children
 * @property {{ code: string, text: string }[]} warnings
 */

/** @param {Partial<RunView>} [given] @returns {RunView} */
function newRun(given) {
  return {
    agent_path: [],
    model: "",
    prompt: "",
    status: "running",
    step: 0,
    usage: null,
    limit: null,
    compactions: 0,
    reason: "",
    summary: null,
    messages: new Map(),
    tools: new Map(),
    steering: new Map(),
    whole: false,
    hops: false,
    ...given,
  };
}

/** A state of which nothing is known but whose it is. @param {string} agent @param {string} [epoch] @returns {ClientState} */
export function newState(agent, epoch = "") {
  return {
    agent,
    name: "",
    epoch,
    seq: 0,
    status: "idle",
    run: null,
    counters: null,
    runs: new Map(),
    requests: new Map(),
    history: [],
    children: [],
    warnings: [],
  };
}

/**
 * The state that the reply to an attach tells; events from `reply.head + 1` follow it.
 * @param {string} agent @param {P.Attached} reply @param {number} now  In seconds, on any clock.
 * @returns {ClientState}
 */
export function startFrom(agent, reply, now, name = "") {
  const state = { ...newState(agent, reply.epoch), name };
  const snapshot = reply.snapshot;
  if (!snapshot) return state;
  state.seq = reply.head;
  state.run = snapshot.run;
  state.status = snapshot.state;
  state.counters = snapshot.counters;
  state.history = snapshot.history;
  state.children = snapshot.children;
  if (snapshot.run !== null) state.runs.set(snapshot.run, newRun({ step: snapshot.step_number, usage: snapshot.usage }));
  for (const child of snapshot.children) state.runs.set(child.run, newRun({ agent_path: child.agent_path }));
  for (const request of reply.open_requests) state.requests.set(request.request, waiting(request, now));
  return state;
}

/**
 * The state behind one more item of a follower.
 * @param {ClientState | undefined} state @param {Item} item @param {number} now
 * @returns {ClientState}
 */
export function reduce(state, item, now) {
  if (item.kind === "gone") return { ...(state ?? newState(item.agent)), status: "stopped", run: null, requests: new Map() };
  if (item.kind !== "event") return startFrom(item.agent, item.reply, now, state?.name ?? "");
  const next = { ...(state ?? newState(item.agent, item.epoch)), seq: item.last };
  if ("run" in item.event) applyToRun(next, item.event, now);
  else applyToAgent(next, item.event);
  if (next.status !== "stopped") next.status = statusOf(next);
  return next;
}

/** How long a request waits still; `null`: as long as its run. @param {RequestView} view @param {number} now */
export function secondsLeft(view, now) {
  return view.deadline === null ? null : Math.max(0, view.deadline - now);
}

/** @param {P.OpenRequest} request @param {number} now @returns {RequestView} */
function waiting(request, now) {
  const left = request.expires_in_seconds ?? null;
  return { request, deadline: left === null ? null : now + left };
}

/** @param {ClientState} state @returns {ClientState["status"]} */
function statusOf(state) {
  if (state.run === null) return "idle";
  if ([...state.requests.values()].some((view) => view.request.kind === "tools")) return "paused";
  return state.requests.size ? "waiting" : "running";
}

/** @param {ClientState} state @param {P.Event} event */
function applyToAgent(state, event) {
  switch (event.type) {
    case "agent_spawned":
      state.name = event.name;
      break;
    case "agent_warning":
      warn(state, event.code, event.text);
      break;
    case "agent_failed":
      warn(state, event.error.code, event.error.message);
      break;
    case "agent_stopped":
      state.status = "stopped";
      state.run = null;
      state.requests = new Map();
      break;
  }
}

/** @param {ClientState} state @param {Extract<P.Event, { run: string }>} event @param {number} now */
function applyToRun(state, event, now) {
  const root = !event.agent_path?.length;
  const run = { ...(state.runs.get(event.run) ?? newRun({ agent_path: event.agent_path ?? [] })) };
  state.runs = new Map(state.runs).set(event.run, run);
  switch (event.type) {
    case "run_started":
      Object.assign(run, { model: event.model, prompt: event.prompt, whole: true });
      if (root) {
        state.run = event.run;
        state.counters = null;
        forgetOld(state);
      }
      break;
    case "handed_off":
      run.model = event.model;
      break;
    case "step_started":
      run.step = event.step;
      run.whole = true;
      break;
    case "content_delta":
    case "reasoning_delta":
    case "tool_call_delta":
    case "rollback":
      applyToMessage(run, event);
      break;
    case "hop_finished":
      run.hops = true;
      break;
    case "usage":
      run.usage = event.usage;
      break;
    case "step_finished":
      if (!run.hops) run.usage = plus(run.usage, event.usage);
      run.hops = false;
      break;
    case "tool_requested":
    case "tool_started":
    case "tool_progress":
    case "tool_finished":
      applyToTool(run, event);
      break;
    case "message_queued":
      run.steering = new Map(run.steering).set(event.message, { text: event.text, status: "queued" });
      break;
    case "message_delivered":
    case "message_dropped": {
      const text = run.steering.get(event.message)?.text ?? "";
      const status = event.type === "message_delivered" ? "delivered" : "dropped";
      run.steering = new Map(run.steering).set(event.message, { text, status });
      break;
    }
    case "limit_reached":
      run.limit = event.limit;
      break;
    case "context_compacted":
      run.compactions += 1;
      break;
    case "warning":
      warn(state, event.code, event.text);
      break;
    case "run_finished":
    case "run_failed":
    case "run_cancelled":
      end(state, run, event);
      break;
    case "continuation_required":
      open(state, "continuation", { on_timeout: "decline", digest: "", ...event }, now);
      break;
    case "approval_required":
      open(state, "approval", event, now);
      break;
    case "run_paused":
      open(state, "tools", { expires_in_seconds: null, ...event }, now);
      break;
    case "continuation_resolved":
    case "approval_resolved":
      close(state, (view) => view.request.request === event.request);
      break;
    case "run_resumed":
      if (root) {
        state.counters = event.counters;
        state.run = event.run;
      }
      close(state, (view) => view.request.kind === "tools" && view.request.run === event.run);
      break;
  }
}

/** @param {RunView} run @param {P.ContentDelta | P.ReasoningDelta | P.ToolCallDelta | P.Rollback} event */
function applyToMessage(run, event) {
  const message = { ...(run.messages.get(event.message) ?? { text: "", reasoning: "", calls: [], partial: !run.whole }) };
  run.messages = new Map(run.messages).set(event.message, message);
  switch (event.type) {
    case "content_delta":
      message.text += event.text;
      break;
    case "reasoning_delta":
      message.reasoning += event.text;
      break;
    case "tool_call_delta":
      if (event.index >= 0 && event.index < MOST_CALLS) {
        message.calls = [...message.calls];
        while (message.calls.length <= event.index) message.calls.push("");
        message.calls[event.index] += event.text;
      }
      break;
    case "rollback": // where the beginning is missing, nobody knows which characters stand
      message.text = message.partial ? "" : firstOf(message.text, event.to);
      message.reasoning = message.partial ? "" : firstOf(message.reasoning, event.reasoning_to ?? 0);
      message.calls = message.calls.slice(0, event.calls_to ?? 0);
      break;
  }
}

/** The first characters of a text: the protocol counts code points. @param {string} text @param {number} count */
function firstOf(text, count) {
  return Array.from(text).slice(0, count).join("");
}

/** @param {RunView} run @param {P.ToolRequested | P.ToolStarted | P.ToolProgress | P.ToolFinished} event */
function applyToTool(run, event) {
  const name = "name" in event ? event.name : "";
  const tool = { ...(run.tools.get(event.call) ?? { name, arguments: {}, status: "requested", progress: "", text: "" }) };
  switch (event.type) {
    case "tool_requested":
      Object.assign(tool, { name, arguments: event.arguments, status: "requested", progress: "", text: "" });
      break;
    case "tool_started":
      tool.status = "running";
      break;
    case "tool_progress":
      tool.progress = event.text;
      break;
    case "tool_finished":
      tool.status = event.status;
      tool.text = event.text;
      break;
  }
  run.tools = new Map(run.tools).set(event.call, tool);
}

/** @param {ClientState} state @param {P.OpenRequest["kind"]} kind @param {any} event @param {number} now */
function open(state, kind, event, now) {
  const { type: _type, ...fields } = event;
  const request = /** @type {P.OpenRequest} */ ({ agent_path: [], ...fields, kind, agent: state.agent });
  state.requests = new Map(state.requests).set(request.request, waiting(request, now));
}

/** @param {ClientState} state @param {(view: RequestView) => boolean} closed */
function close(state, closed) {
  state.requests = new Map([...state.requests].filter(([, view]) => !closed(view)));
}

/** @param {ClientState} state @param {RunView} run @param {P.RunFinished | P.RunFailed | P.RunCancelled} event */
function end(state, run, event) {
  run.summary = event.summary;
  run.usage = event.summary.usage;
  run.status = event.type === "run_finished" ? "finished" : event.type === "run_failed" ? "failed" : "cancelled";
  if (event.type === "run_failed") run.reason = event.error.message;
  if (event.type === "run_cancelled") run.reason = event.reason;
  close(state, (view) => view.request.run === event.run);
  if (state.run === event.run) {
    state.run = null;
    state.counters = event.summary.counters;
  }
}

/** @param {ClientState} state */
function forgetOld(state) {
  const ended = [...state.runs].filter(([, run]) => run.status !== "running").map(([id]) => id);
  const gone = new Set(ended.slice(0, Math.max(0, ended.length - KEPT_RUNS)));
  state.runs = new Map([...state.runs].filter(([id]) => !gone.has(id)));
}

/** @param {ClientState} state @param {string} code @param {string} text */
function warn(state, code, text) {
  state.warnings = [...state.warnings, { code, text }].slice(-KEPT_WARNINGS);
}

/** @param {P.Usage | null} left @param {P.Usage} right @returns {P.Usage} */
function plus(left, right) {
  if (left === null) return right;
  /** @param {number | null | undefined} a @param {number | null | undefined} b */
  const sum = (a, b) => (a == null ? (b ?? null) : b == null ? a : a + b);
  return {
    uncached_input_tokens: sum(left.uncached_input_tokens, right.uncached_input_tokens),
    cache_read_tokens: sum(left.cache_read_tokens, right.cache_read_tokens),
    cache_write_tokens: sum(left.cache_write_tokens, right.cache_write_tokens),
    output_tokens: sum(left.output_tokens, right.output_tokens),
    reasoning_tokens: sum(left.reasoning_tokens, right.reasoning_tokens),
    complete: left.complete && right.complete,
  };
}

// ---------------------------------------------------------------------------------------------------------------------
// Following: what comes is put in order, gaps are found, and what is missing is asked for again.

/** @typedef {{ agent: string, cursor: Cursor | null, waiting: boolean, parked: boolean, head: number, barren: number }} Track */
/** @typedef {{ since?: "head" | "start" | P.Position, deltas?: boolean, types?: string[], maxQueued?: number }} FollowOptions */

/** @param {string} agent @param {Cursor | null} [cursor] @returns {Track} */
const newTrack = (agent, cursor = null) => ({ agent, cursor, waiting: true, parked: false, head: 0, barren: 0 });

/**
 * An async iterator over what happens to an agent, or to all (`*`). Made by `onward.follow()`; leaving the loop ends it.
 *
 * Each agent has a track with its place. From an attach to its reply, what comes of the agent is of an earlier attach and
 * is dropped. When the queue is full, its agents are detached until the reader has emptied it, and go on from their places.
 * @implements {AsyncIterableIterator<Item>}
 */
export class Follower {
  /** @param {Onward} link @param {string} target @param {FollowOptions} options */
  constructor(link, target, { since = "head", deltas = true, types, maxQueued = 1024 } = {}) {
    this.target = target;
    this.counts = { events: 0, attaches: 0, gaps: 0, overflows: 0, reattached: 0 };
    this._link = link;
    this._since = since;
    this._how = { deltas, types: types ?? null };
    this._most = maxQueued;
    /** @type {Map<string, Track>} */
    this._tracks = new Map();
    /** @type {Item[]} */
    this._queue = [];
    /** @type {{ resolve: (result: IteratorResult<Item>) => void, reject: (error: Error) => void }[]} */
    this._readers = [];
    this._allWaiting = true;
    this._begun = false;
    this._ended = false;
    /** @type {Error | null} */
    this._error = null;
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  /** @returns {Promise<IteratorResult<Item>>} */
  next() {
    const item = this._queue.shift();
    if (item !== undefined) {
      if (!this._queue.length) this._emptied();
      return Promise.resolve({ done: false, value: item });
    }
    if (this._error !== null) return Promise.reject(this._error);
    if (this._ended) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve, reject) => this._readers.push({ resolve, reject }));
  }

  /** Follow no longer. @returns {Promise<IteratorResult<Item>>} */
  return() {
    if (!this._ended) {
      this._end();
      if (this._link.isLive) this._link._post("agent.detach", { agent: this.target }, () => {});
    }
    this._link._followers.delete(this);
    this._queue = [];
    return Promise.resolve({ done: true, value: undefined });
  }

  /** @param {string} target */
  excludes(target) {
    return this.target === "*" || target === "*" || target === this.target;
  }

  _connected() {
    for (const track of this._tracks.values()) Object.assign(track, { parked: false, waiting: true, head: 0 });
    if (this.target !== "*") {
      if (!this._tracks.size) this._tracks.set(this.target, newTrack(this.target));
      for (const track of this._tracks.values()) this._attach(track);
      return;
    }
    this._allWaiting = true;
    this.counts.attaches += 1;
    const from = this._begun ? "head" : this._since;
    this._link._post("agent.attach", { agent: "*", from, ...this._how }, (reply, error) => this._attachedAll(reply, error));
  }

  _lost() {
    this._allWaiting = true;
    for (const track of this._tracks.values()) track.waiting = true;
  }

  /** What was said last time must have come by now: else it was lost without a word. @param {Record<string, number>} heads */
  _heartbeat(heads) {
    for (const track of this._tracks.values()) {
      if (track.waiting || !track.cursor) continue;
      if (track.head > track.cursor.seq) {
        this.counts.gaps += 1;
        this._attach(track);
      }
      track.head = Math.max(track.head, heads[track.agent] ?? 0);
    }
  }

  /** @param {P.Events} events */
  _events(events) {
    let track = this._tracks.get(events.agent);
    if (!track) {
      if (this.target !== "*" || this._allWaiting) return;
      track = newTrack(events.agent, new Cursor(events.epoch, 0)); // spawned since: followed from its first event
      track.waiting = false;
      this._tracks.set(events.agent, track);
    }
    if (track.waiting || !track.cursor) return;
    if (this._queue.length >= this._most) {
      this._park(track);
      return;
    }
    const [fresh, whole] = track.cursor.take(events);
    for (const item of fresh) {
      track.barren = 0;
      this.counts.events += 1;
      this._put(item);
      if (item.event.type === "agent_stopped") this._drop(track);
    }
    if (whole) return;
    this.counts.gaps += 1;
    track.barren += 1;
    if (track.barren >= MOST_BARREN) throw new NotOfTheWire(`the events of ${track.agent} do not go on`);
    this._attach(track);
  }

  /** @param {Track} track */
  _attach(track) {
    track.waiting = true;
    track.parked = false;
    this.counts.attaches += 1;
    const from = track.cursor ? { epoch: track.cursor.epoch, seq: track.cursor.seq } : this._since;
    const params = { agent: track.agent, from, ...this._how };
    this._link._post("agent.attach", params, (reply, error) => this._attached(track, reply, error));
  }

  /** @param {Track} track @param {any} reply @param {WireRefused | null} error */
  _attached(track, reply, error) {
    if (this._ended || this._tracks.get(track.agent) !== track) return;
    if (error === null) this._place(track, reply);
    else if (error.code !== "not_found" || !this._begun) return this._fail(error);
    else {
      this._put({ kind: "gone", agent: track.agent });
      this._drop(track);
    }
    this._begun = true;
  }

  /** @param {P.AttachedAll} reply @param {WireRefused | null} error */
  _attachedAll(reply, error) {
    if (this._ended) return;
    if (error !== null) return this._fail(error);
    const agents = new Map(Object.entries(reply.agents));
    for (const track of [...this._tracks.values()]) {
      if (agents.has(track.agent)) continue;
      this._put({ kind: "gone", agent: track.agent });
      this._drop(track);
    }
    for (const [agent, attached] of agents) {
      let track = this._tracks.get(agent);
      if (!track) {
        track = newTrack(agent);
        this._tracks.set(agent, track);
        if (!this._begun) {
          this._place(track, attached);
          continue;
        }
        track.cursor = new Cursor(attached.epoch, 0); // it came while there was no connection: from its first event
      }
      const cursor = /** @type {Cursor} */ (track.cursor);
      if (cursor.epoch === attached.epoch && cursor.seq === attached.head) track.waiting = false;
      else this._attach(track);
    }
    this._allWaiting = false;
    this._begun = true;
  }

  /** @param {Track} track @param {P.Attached} reply */
  _place(track, reply) {
    const lost = track.cursor !== null || typeof this._since === "object";
    if (reply.snapshot) {
      track.cursor = new Cursor(reply.epoch, reply.head);
      if (lost) this.counts.reattached += 1;
      this._put({ kind: lost ? "reattached" : "attached", agent: track.agent, reply });
    } else if (!track.cursor) {
      track.cursor = new Cursor(reply.epoch, typeof this._since === "object" ? this._since.seq : 0);
    }
    track.waiting = false;
  }

  /** @param {Item} item */
  _put(item) {
    const reader = this._readers.shift();
    if (reader) reader.resolve({ done: false, value: item });
    else this._queue.push(item);
  }

  /** @param {Track} track */
  _park(track) {
    this.counts.overflows += 1;
    track.waiting = track.parked = true;
    this._link._post("agent.detach", { agent: track.agent }, () => {});
  }

  _emptied() {
    for (const track of this._tracks.values()) if (track.parked && this._link.isLive) this._attach(track);
  }

  /** @param {Track} track */
  _drop(track) {
    this._tracks.delete(track.agent);
    if (this.target !== "*") this._end();
  }

  _end() {
    this._ended = true;
    for (const reader of this._readers.splice(0)) reader.resolve({ done: true, value: undefined });
  }

  /** @param {Error} error */
  _fail(error) {
    if (this._error || this._ended) return;
    this._error = error;
    for (const reader of this._readers.splice(0)) reader.reject(error);
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// The link: one connection after the other, as long as the server does not refuse it.

/** @typedef {{ id: number, method: string, text: string, resend: boolean, sent: boolean, own: boolean, settle: (result: any, error: Error | null) => void }} Call */
/** @typedef {(url: string, protocol: string, headers: Record<string, string>) => WebSocket} OpenSocket */
/**
 * @typedef {object} Options
 * @property {string} [url]  `ws://HOST:PORT/ws`; in a page its own gateway's.
 * @property {string} [token]  A bearer token: for programs, a page has its cookie.
 * @property {OpenSocket} [open]  Opens a WebSocket in another way, such as with `ws` from npm.
 * @property {(state: LinkState) => void} [onstate]  Told of connections that come and go.
 * @property {() => number} [chance]  Random numbers between 0 and 1.
 * @property {string} [name]  Stands in the server's logs.
 * @property {number} [commandSeconds]  Within it a command is answered, reconnections included.
 * @property {number} [firstSeconds]  The longest wait before the first new try.
 * @property {number} [mostSeconds]  The longest wait of all.
 */

/** A client of one gateway: commands as promises, `follow()` for events. It connects at once and comes back by itself. */
export class Onward {
  /** @param {Options} [options] */
  constructor(options = {}) {
    const { url, token, open = openSocket, onstate = () => {}, chance = Math.random, name = "onward.mjs" } = options;
    const { commandSeconds = 30, firstSeconds = 0.5, mostSeconds = 30 } = options;
    this.url = url ?? addressOfPage();
    /** The answer to the last `hello`. @type {P.Welcome | null} */
    this.welcome = null;
    this.statistics = { connections: 0, resent: 0 };
    this._token = token;
    this._openSocket = open;
    this._onstate = onstate;
    this._chance = chance;
    this._name = name;
    this._commandSeconds = commandSeconds;
    this._waits = { first: firstSeconds, most: mostSeconds };
    /** @type {Set<Follower>} */
    this._followers = new Set();
    /** Without a reply, in the order in which they were given. @type {Map<number, Call>} */
    this._calls = new Map();
    /** @type {Call[]} */
    this._outbox = [];
    this._lastId = 0;
    this._tries = 0;
    this._liveSince = 0;
    /** @type {WebSocket | null} */
    this._socket = null;
    /** @type {Error | null} */
    this._over = null;
    /** @type {Set<{ resolve: (welcome: P.Welcome) => void, reject: (error: Error) => void }>} */
    this._waiting = new Set();
    /** @type {Record<string, ReturnType<typeof setTimeout> | undefined>} */
    this._timers = {};
    this.isLive = false;
    this._connect();
  }

  /** Wait until there is a connection. Rejects when there will be none. @returns {Promise<P.Welcome>} */
  connected() {
    if (this._over) return Promise.reject(this._over);
    if (this.isLive && this.welcome) return Promise.resolve(this.welcome);
    return new Promise((resolve, reject) => this._waiting.add({ resolve, reject }));
  }

  /** End it: what waits for a reply is rejected, followers end. */
  close() {
    this._finish(new Disconnected("this client has been closed", 1000));
  }

  /** @returns {Promise<P.AgentInfo[]>} */
  async agents() {
    return (await this.ask("agent.list", {})).agents;
  }

  /** All that waits for somebody. @returns {Promise<P.OpenRequest[]>} */
  async requests() {
    return (await this.ask("request.list", {})).requests;
  }

  /** Make an agent from a template of the host's. @param {string} template @param {{ name?: string, overrides?: Record<string, unknown> }} [given] */
  spawn(template, { name, overrides = {} } = {}) {
    return this.ask("agent.spawn", { spec: { template, name: name ?? null, overrides }, idem: newKey() });
  }

  /** Start a run. @param {string} agent @param {string} prompt @param {{ limits?: P.RunLimits, ifBusy?: "refuse" | "queue" }} [given] */
  start(agent, prompt, { limits, ifBusy = "refuse" } = {}) {
    return this.ask("run.start", { agent, prompt, limits: limits ?? null, if_busy: ifBusy, idem: newKey() });
  }

  /** Give a run a message. @param {string} run @param {string} text */
  steer(run, text) {
    return this.ask("run.steer", { run, text, idem: newKey() });
  }

  /** End a run. @param {string} run @param {{ mode?: "boundary" | "now", reason?: string }} [given] */
  cancel(run, { mode = "boundary", reason = "" } = {}) {
    return this.ask("run.cancel", { run, mode, reason });
  }

  /** Stop an agent; not given again after a broken connection. @param {string} agent @param {{ mode?: "boundary" | "now", reason?: string }} [given] */
  stop(agent, { mode = "boundary", reason = "" } = {}) {
    return this.ask("agent.stop", { agent, mode, reason }, { resend: false });
  }

  /** Give a paused run its results; not given again after a broken connection. @param {string} run @param {Record<string, unknown>} results */
  submit(run, results) {
    return this.ask("tools.submit", { run, results }, { resend: false });
  }

  /**
   * Answer "may this go on?", as it was shown: `request` is the event, or what `requests()` gave.
   * @param {P.ContinuationRequired | P.OpenContinuation} request @param {"approve" | "decline"} decision
   * @param {{ message?: string, discard?: boolean | string[], toolMessage?: string, grant?: number }} [given]
   */
  decide({ request, digest = "" }, decision, { message, discard = false, toolMessage, grant } = {}) {
    return this.ask("continuation.decide", {
      request,
      decision,
      digest,
      message: message ?? null,
      discard_tool_calls: discard,
      tool_message: toolMessage ?? null,
      grant: grant ?? null,
      idem: newKey(),
    });
  }

  /**
   * Answer "may this call run?", as it was shown: `arguments` run in place of those.
   * @param {P.ApprovalRequired | P.OpenApproval} request @param {"approve" | "deny"} decision
   * @param {{ reason?: string, arguments?: Record<string, unknown> }} [given]
   */
  decideApproval({ request, digest }, decision, given = {}) {
    const { reason = null, arguments: edited = null } = given;
    return this.ask("approval.decide", { request, decision, digest, reason, arguments: edited, idem: newKey() });
  }

  /** A page of the events behind a position. @param {string} agent @param {P.Position} from @param {number} [limit] */
  fetch(agent, from, limit = 500) {
    return this.ask("agent.fetch", { agent, from, limit });
  }

  /** Wait for an answer of the server. */
  ping() {
    return this.ask("ping", {});
  }

  /** Follow an agent, or all: once each. @param {string} [agent] @param {FollowOptions} [options] */
  follow(agent = "*", options = {}) {
    for (const follower of this._followers)
      if (follower.excludes(agent)) throw new TypeError(`${agent} is followed already: follow an agent once`);
    if (agent === "*" && typeof options.since === "object") throw new TypeError("* is followed from head or start");
    const follower = new Follower(this, agent, options);
    this._followers.add(follower);
    if (this._over) follower._fail(this._over);
    else if (this.isLive) follower._connected();
    return follower;
  }

  /**
   * Give any command. Rejects with `WireRefused`, `ReplyLost` or `Disconnected`.
   * @template {keyof P.Params} M
   * @param {M} method @param {P.Params[M]} params @param {{ resend?: boolean }} [how]
   * @returns {Promise<P.Results[M]>}
   */
  ask(method, params, { resend = true } = {}) {
    if (this._over) return Promise.reject(this._over);
    return new Promise((resolve, reject) => {
      const call = this._new(method, params, { resend, own: false }, (result, error) => {
        clearTimeout(timer);
        if (error) reject(error);
        else resolve(result);
      });
      const timer = setTimeout(() => {
        this._calls.delete(call.id);
        reject(new ReplyLost(`${method} was not answered within ${this._commandSeconds} s`));
      }, this._commandSeconds * 1000);
    });
  }

  /** @param {string} method @param {unknown} params @param {(reply: any, error: WireRefused | null) => void} settle */
  _post(method, params, settle) {
    this._new(method, params, { resend: false, own: true }, (reply, error) => {
      if (error === null || error instanceof WireRefused) settle(reply, error);
    });
  }

  /** @param {string} method @param {unknown} params @param {{ resend: boolean, own: boolean }} how @param {Call["settle"]} settle */
  _new(method, params, how, settle) {
    const id = ++this._lastId;
    /** @type {Call} */
    const call = { id, method, text: command(id, method, params), sent: false, settle, ...how };
    this._calls.set(id, call);
    this._outbox.push(call);
    if (this.isLive) this._flush();
    return call;
  }

  _connect() {
    this._tell("connecting");
    /** @type {Record<string, string>} */
    const headers = this._token === undefined ? {} : { Authorization: `Bearer ${this._token}` };
    /** @type {WebSocket} */
    let socket;
    try {
      socket = this._socket = this._openSocket(this.url, SUBPROTOCOL, headers);
    } catch (error) {
      this._finish(new Disconnected(`no connection to ${this.url}: ${error}`));
      return;
    }
    let opened = false;
    this._timers.connect = setTimeout(() => this._drop("the connection took too long"), 10_000);
    socket.addEventListener("open", () => {
      opened = true;
      socket.send(command("hello", "hello", { client: { name: this._name } }));
    });
    socket.addEventListener("message", ({ data }) => {
      if (socket === this._socket) this._guarded(() => this._received(data));
    });
    socket.addEventListener("error", () => {}); // a close event follows
    socket.addEventListener("close", ({ code, reason }) => {
      if (socket === this._socket) this._closed(code, reason, opened);
    });
  }

  /** What the server sends must not break the page: what is not of the protocol ends the connection. @param {() => void} body */
  _guarded(body) {
    try {
      body();
    } catch (error) {
      if (!(error instanceof NotOfTheWire || error instanceof SyntaxError || error instanceof TypeError)) throw error;
      this._drop(`what the server sent is not of this protocol: ${error.message}`);
    }
  }

  /** @param {unknown} data */
  _received(data) {
    if (typeof data !== "string") throw new NotOfTheWire("bytes");
    this._watch();
    const frame = JSON.parse(data);
    for (const message of Array.isArray(frame) ? frame : [frame]) {
      if (this._over) return;
      if (message.id === "hello") this._welcomed(message);
      else if (message.method === "events") for (const follower of [...this._followers]) follower._events(message.params);
      else if (message.method === "heartbeat") for (const follower of [...this._followers]) follower._heartbeat(message.params.heads);
      else if (message.method === undefined) this._answered(message);
    }
  }

  /** @param {any} message */
  _welcomed({ result, error }) {
    if (error) return this._finish(new Disconnected(`hello was refused: ${error.message}`, 4503));
    clearTimeout(this._timers.connect);
    this.welcome = /** @type {P.Welcome} */ (result);
    this.isLive = true;
    this._liveSince = Date.now();
    this.statistics.connections += 1;
    this._allowed = { left: result.limits.commands_burst, at: Date.now() };
    this._tell("live");
    for (const { resolve } of this._waiting) resolve(result);
    this._waiting.clear();
    for (const follower of [...this._followers]) follower._connected();
    this._watch();
    this._flush();
  }

  /** Nothing for so long: the connection is dead, and a page sees no pings. */
  _watch() {
    clearTimeout(this._timers.watch);
    if (!this.isLive || !this.welcome) return;
    const seconds = 2.5 * this.welcome.heartbeat_seconds;
    if (!(seconds > 0)) return;
    this._timers.watch = setTimeout(() => this._drop(`nothing was heard for ${seconds} s`), seconds * 1000);
  }

  /** @param {any} message */
  _answered({ id, result, error }) {
    const call = this._calls.get(id);
    if (!call) return;
    if (error?.data?.code === "overloaded") {
      this._outbox.push(call);
      this._allowed = { left: 0, at: Date.now() + (error.data.retry_after_ms ?? 1000) };
      this._flush();
      return;
    }
    if (error?.data?.code === "draining" && error.data.retryable === true) {
      call.sent = false; // it was not done, as the server goes away: it is given again on the next connection
      return;
    }
    this._calls.delete(id);
    if (error) call.settle(null, new WireRefused(String(error.data?.code ?? error.code), error.message, error.data ?? {}));
    else call.settle(result, null);
  }

  /** Send what waits, as fast as the server takes it. */
  _flush() {
    clearTimeout(this._timers.flush);
    while (this.isLive && this._outbox.length && this._allowed && this.welcome) {
      const { commands_per_second: rate, commands_burst: burst } = this.welcome.limits;
      const now = Date.now();
      const left = Math.min(burst, this._allowed.left + ((now - this._allowed.at) / 1000) * rate);
      if (left < 1) {
        this._timers.flush = setTimeout(() => this._flush(), ((1 - left) / rate) * 1000);
        return;
      }
      this._allowed = { left: left - 1, at: now };
      const call = /** @type {Call} */ (this._outbox.shift());
      if (!this._calls.has(call.id)) continue;
      call.sent = true;
      this._socket?.send(call.text);
    }
  }

  /** Give a connection up that does not end by itself. @param {string} reason */
  _drop(reason) {
    const socket = this._socket;
    if (!socket) return;
    this._closed(BROKEN, reason, this.isLive);
    try {
      socket.close();
    } catch {
      // it never opened
    }
  }

  /** @param {number} code @param {string} reason @param {boolean} opened */
  async _closed(code, reason, opened) {
    this._socket = null;
    for (const timer of Object.values(this._timers)) clearTimeout(timer);
    if (this._over) return;
    if (this.isLive) {
      this.isLive = false;
      if (Date.now() - this._liveSince >= this._waits.most * 1000) this._tries = 0;
      this._loseCalls();
      for (const follower of this._followers) follower._lost();
    }
    const text = reason || `the connection was closed with ${code}`;
    if (!mayReconnect(code)) return this._finish(new Disconnected(text, code));
    const refused = opened ? null : await this._whyRefused();
    if (this._over) return;
    if (refused) return this._finish(refused);
    const wait = waitSeconds(this._tries, this._chance(), this._waits) * 1000;
    this._tries += 1;
    this._timers.retry = setTimeout(() => this._connect(), wait);
    this._tell("connecting", Date.now() + wait, new Disconnected(text, code));
  }

  /** A WebSocket does not tell why it was not opened: a program with a token can ask. @returns {Promise<Disconnected | null>} */
  async _whyRefused() {
    if (this._token === undefined) return null;
    try {
      const headers = { Authorization: `Bearer ${this._token}` };
      const { status } = await fetch(this.url.replace(/^ws/, "http"), { headers, signal: AbortSignal.timeout(5000) });
      const final = status < 500 && ![408, 426, 429].includes(status);
      return final ? new Disconnected(`the server answered ${status}`, status === 401 ? 4501 : 4503) : null;
    } catch {
      return null;
    }
  }

  _loseCalls() {
    this._outbox = [];
    for (const call of [...this._calls.values()]) {
      if (call.own) this._calls.delete(call.id);
      else if (call.sent && !call.resend) {
        this._calls.delete(call.id);
        call.settle(null, new ReplyLost(`${call.method}: the connection broke before the reply; look whether it was done`));
      } else {
        if (call.sent) this.statistics.resent += 1;
        call.sent = false;
        this._outbox.push(call);
      }
    }
  }

  /** @param {Disconnected} error */
  _finish(error) {
    if (this._over) return;
    this._over = error;
    this.isLive = false;
    for (const timer of Object.values(this._timers)) clearTimeout(timer);
    this._socket?.close(1000);
    this._socket = null;
    for (const call of this._calls.values()) call.settle(null, error);
    this._calls.clear();
    for (const { reject } of this._waiting) reject(error);
    this._waiting.clear();
    for (const follower of [...this._followers]) follower._fail(error);
    this._tell("over", undefined, error);
  }

  /** @param {LinkState["state"]} state @param {number} [retryAt] @param {Error} [error] */
  _tell(state, retryAt, error) {
    const told = { state, tries: this._tries, retryAt, error };
    queueMicrotask(() => this._onstate(told)); // what it throws is the page's
  }
}

/** @param {number | string} id @param {string} method @param {unknown} params */
function command(id, method, params) {
  return JSON.stringify({ jsonrpc: "2.0", id, method, params: wellFormed(params) });
}

/** Lone surrogates are no text: the server refuses them. @param {any} value @returns {any} */
function wellFormed(value) {
  if (typeof value === "string") return value.replace(/[\ud800-\udfff]/gu, "\ufffd");
  if (Array.isArray(value)) return value.map(wellFormed);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [wellFormed(key), wellFormed(item)]));
}

/** A key for a command: it is done once, however often it is sent. */
function newKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** @type {OpenSocket} */
function openSocket(url, protocol, headers) {
  // A page cannot set headers, and has its cookie; the WebSocket of Node (from 22) takes them here.
  if (!Object.keys(headers).length) return new WebSocket(url, protocol);
  return new WebSocket(url, /** @type {any} */ ({ protocols: [protocol], headers }));
}

function addressOfPage() {
  if (typeof location === "undefined") throw new TypeError("give a url, such as ws://127.0.0.1:8765/ws");
  return `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws`;
}

/**
 * In a page: exchange the one-time ticket in its address (`#ticket=...`) for the session's cookie, and take it out of the
 * address. Returns whether there was one. Rejects with the server's words if it is not taken.
 */
export async function openSession() {
  const ticket = new URLSearchParams(location.hash.slice(1)).get("ticket");
  if (!ticket) return false;
  history.replaceState(null, "", location.pathname + location.search);
  const headers = { "Content-Type": "application/json" };
  const answer = await fetch("/session", { method: "POST", headers, body: JSON.stringify({ ticket }) });
  if (!answer.ok) throw new Error(await answer.text());
  return true;
}
