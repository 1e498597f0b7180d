// The client against a server that does what the real one does not: `node --test`. Time is virtual.
import assert from "node:assert/strict";
import { beforeEach, mock, test } from "node:test";
import { Disconnected, Onward, ReplyLost, WireRefused } from "../../../actors/client/js/onward.mjs";

/** @type {FakeSocket[]} */
let sockets = [];

class FakeSocket extends EventTarget {
  constructor(url, protocol, headers) {
    super();
    Object.assign(this, { url, protocol, headers, sent: [], closedWith: null });
    sockets.push(this);
  }
  send(text) {
    this.sent.push(JSON.parse(text));
  }
  close(code) {
    this.closedWith = code ?? 1005;
  }
  say(...messages) {
    const data = JSON.stringify(messages.length === 1 ? messages[0] : messages);
    this.dispatchEvent(Object.assign(new Event("message"), { data }));
  }
  welcome({ heartbeat_seconds = 20, limits = {} } = {}) {
    this.dispatchEvent(new Event("open"));
    const result = { heartbeat_seconds, limits: { commands_per_second: 20, commands_burst: 40, ...limits } };
    this.say({ id: "hello", result });
  }
  answer(result = {}) {
    this.say({ id: this.sent.at(-1).id, result });
  }
  refuse(code, data = {}) {
    this.say({ id: this.sent.at(-1).id, error: { code: -32010, message: "not so", data: { code, ...data } } });
  }
  events(seq, ...events) {
    this.say({ method: "events", params: { agent: "a", epoch: "e1", seq, events } });
  }
  end(code, reason = "because") {
    this.dispatchEvent(Object.assign(new Event("close"), { code, reason }));
  }
}

const attached = (more = {}) => ({ epoch: "e1", head: 0, oldest: 1, recovered: true, open_requests: [], ...more });
const snapshot = { state: "idle", run: null, step_number: 0, counters: null, usage: null, history: [], children: [] };
const text = (number, n = 1) => ({ type: "content_delta", run: "r", message: "m", text: `<${number}>`, n });
const settled = () => new Promise(setImmediate);
const methods = (socket) => socket.sent.map(({ method }) => method);
const last = () => sockets.at(-1);

function client(options = {}) {
  const open = (...given) => new FakeSocket(...given);
  return new Onward({ url: "ws://host/ws", open, chance: () => 1, ...options });
}

/** Let time go on, and what waits for it. */
async function pass(seconds) {
  mock.timers.tick(seconds * 1000);
  await settled();
}

async function take(follower, count) {
  const items = [];
  for (let at = 0; at < count; at += 1) {
    const { value } = await follower.next();
    items.push(value.kind === "event" ? [value.number, value.last, value.event.text] : value.kind);
  }
  return items;
}

beforeEach(() => {
  sockets = [];
  mock.timers.reset();
  mock.timers.enable({ apis: ["setTimeout", "Date"], now: 1_000_000 });
});

test("it says hello with its subprotocol and its token", async () => {
  const onward = client({ token: "secret", name: "me" });
  last().welcome();
  await onward.connected();
  assert.deepEqual(["onward.v1", { Authorization: "Bearer secret" }], [last().protocol, last().headers]);
  assert.deepEqual({ client: { name: "me" } }, last().sent[0].params);
  onward.close();
});

test("commands wait for the connection, are answered, refused, and given again with their key", async () => {
  const onward = client();
  const steered = onward.steer("r", "faster");
  last().welcome();
  assert.deepEqual(["hello", "run.steer"], methods(last()));
  const [, first] = last().sent;
  last().end(1006);
  await settled();
  await pass(0.5);
  last().welcome();
  assert.deepEqual(first, last().sent[1]);
  last().answer({ replayed: true });
  assert.deepEqual({ replayed: true }, await steered);
  assert.equal(onward.statistics.resent, 1);
  const refused = onward.cancel("r");
  last().refuse("not_found", { retryable: false });
  await assert.rejects(refused, (error) => error instanceof WireRefused && error.code === "not_found" && !error.retryable);
  onward.close();
});

test("what must not be given twice is not", async () => {
  const onward = client();
  last().welcome();
  const stopped = onward.stop("a");
  last().end(1006);
  await assert.rejects(stopped, ReplyLost);
  await pass(0.5);
  last().welcome();
  assert.deepEqual(["hello"], methods(last()));
  onward.close();
});

test("what a server that goes away does not take is given to the next one", async () => {
  const onward = client();
  last().welcome();
  const stopped = onward.stop("a");
  last().refuse("draining", { retryable: true });
  last().end(1012);
  await settled();
  await pass(0.5);
  last().welcome();
  assert.deepEqual(["hello", "agent.stop"], methods(last()));
  last().answer();
  assert.deepEqual({}, await stopped);
  const refused = onward.steer("r", "faster");
  last().refuse("draining", { retryable: false });
  await assert.rejects(refused, (error) => error.code === "draining");
  onward.close();
});

test("a command has a deadline", async () => {
  const onward = client({ commandSeconds: 30 });
  const lost = assert.rejects(onward.ping(), /ping was not answered within 30 s/);
  await pass(30);
  await lost;
  onward.close();
});

test("the waits between tries double up to a bound", async () => {
  const at = [];
  const start = Date.now();
  const onward = client({ onstate: ({ retryAt }) => retryAt && at.push((retryAt - Date.now()) / 1000) });
  for (let tries = 0; tries < 9; tries += 1) {
    last().end(1006);
    await settled();
    await pass(30);
  }
  assert.deepEqual([0.5, 1, 2, 4, 8, 16, 30, 30, 30], at);
  assert.equal(sockets.length, 10);
  assert.ok(Date.now() > start);
  onward.close();
});

for (const code of [1000, 1002, 1009, 4501, 4526])
  test(`${code} is final`, async () => {
    const onward = client();
    last().welcome();
    const waiting = assert.rejects(onward.ping(), (error) => error instanceof Disconnected && error.code === code);
    const follower = onward.follow("a");
    const following = assert.rejects(follower.next(), Disconnected);
    last().end(code);
    await Promise.all([waiting, following]);
    await assert.rejects(onward.connected(), Disconnected);
    await pass(100);
    assert.equal(sockets.length, 1);
  });

test("a program that is refused for its token is told, and does not try again", async () => {
  const fetched = mock.method(globalThis, "fetch", async () => ({ status: 401 }));
  const onward = client({ token: "wrong" });
  const refused = assert.rejects(onward.connected(), (error) => error.code === 4501);
  last().end(1006);
  await refused;
  assert.equal(fetched.mock.calls[0].arguments[0], "http://host/ws");
  fetched.mock.restore();
  await pass(100);
  assert.equal(sockets.length, 1);
});

test("a server that falls silent is left", async () => {
  const onward = client();
  last().welcome();
  await pass(49);
  last().say({ method: "heartbeat", params: { heads: {} } });
  await pass(49);
  assert.equal(sockets.length, 1);
  await pass(2);
  await pass(0.5);
  assert.equal(sockets.length, 2);
  assert.notEqual(sockets[0].closedWith, null);
  onward.close();
});

test("a server that never opens is left", async () => {
  const onward = client();
  await pass(10);
  await pass(0.5);
  assert.equal(sockets.length, 2);
  onward.close();
});

for (const [what, data] of [["no JSON", "no json"], ["bytes", new ArrayBuffer(1)], ["no object", "null"], ["no events", '{"method":"events"}']])
  test(`${what}: the connection is dropped and made again`, async () => {
    const onward = client();
    last().welcome();
    void onward.follow("a").next().catch(() => {});
    last().dispatchEvent(Object.assign(new Event("message"), { data }));
    await settled();
    await pass(0.5);
    assert.equal(sockets.length, 2);
    onward.close();
  });

test("no more commands are sent than the server allows, and overload is waited out", async () => {
  const onward = client();
  last().welcome({ limits: { commands_per_second: 2, commands_burst: 3 } });
  const pings = Array.from({ length: 5 }, () => onward.ping());
  assert.equal(last().sent.length - 1, 3);
  await pass(0.5);
  assert.equal(last().sent.length - 1, 4);
  last().refuse("overloaded", { retry_after_ms: 1500 });
  await pass(1);
  assert.equal(last().sent.length - 1, 4);
  await pass(5);
  assert.equal(last().sent.length - 1, 6);
  for (const { id } of last().sent.slice(1)) last().say({ id, result: {} });
  await Promise.all(pings);
  onward.close();
});

test("overlaps are dropped, merges count for what they stand for, unknown events are passed over", async () => {
  const onward = client();
  last().welcome();
  const follower = onward.follow("a", { since: "start" });
  last().answer(attached());
  last().events(1, text(1), text(2));
  last().events(1, text(1), text(2), text(3, 3), { type: "skipped", n: 2 }, { type: "new", run: "r" }, text(9));
  assert.deepEqual([[1, 1, "<1>"], [2, 2, "<2>"], [3, 5, "<3>"], [9, 9, "<9>"]], await take(follower, 4));
  onward.close();
});

test("a gap is asked for from the last number; what comes before the reply is not taken", async () => {
  const onward = client();
  last().welcome();
  const follower = onward.follow("a", { since: "start" });
  last().answer(attached());
  last().events(1, text(1));
  last().events(3, text(3));
  assert.deepEqual({ epoch: "e1", seq: 1 }, last().sent.at(-1).params.from);
  last().events(2, text(2));
  last().answer(attached({ head: 3 }));
  last().events(2, text(2), text(3));
  assert.deepEqual([[1, 1, "<1>"], [2, 2, "<2>"], [3, 3, "<3>"]], await take(follower, 3));
  assert.equal(follower.counts.gaps, 1);
  onward.close();
});

test("what is lost without a word is missed at the next heartbeat", async () => {
  const onward = client();
  last().welcome();
  onward.follow("a", { since: "start" });
  last().answer(attached());
  last().events(1, text(1));
  last().say({ method: "heartbeat", params: { heads: { a: 2 } } });
  assert.equal(methods(last()).filter((method) => method === "agent.attach").length, 1);
  last().say({ method: "heartbeat", params: { heads: {} } });
  assert.equal(methods(last()).filter((method) => method === "agent.attach").length, 2);
  onward.close();
});

test("after a restart all begins anew from a snapshot", async () => {
  const onward = client();
  last().welcome();
  const follower = onward.follow("a", { since: "start" });
  last().answer(attached());
  last().events(1, text(1));
  last().end(1012);
  await settled();
  await pass(0.5);
  last().welcome();
  assert.deepEqual({ epoch: "e1", seq: 1 }, last().sent.at(-1).params.from);
  last().answer(attached({ epoch: "e2", head: 7, recovered: false, snapshot }));
  last().say({ method: "events", params: { agent: "a", epoch: "e2", seq: 8, events: [text(8)] } });
  assert.deepEqual([[1, 1, "<1>"], "reattached", [8, 8, "<8>"]], await take(follower, 3));
  onward.close();
});

test("of all: who did not move is not asked for, who came is had whole, who went is told", async () => {
  const onward = client();
  last().welcome();
  const follower = onward.follow("*", { since: "start" });
  last().answer({ agents: { a: attached(), b: attached(), c: attached() } });
  last().events(1, text(1));
  last().end(1012);
  await settled();
  await pass(0.5);
  last().welcome();
  assert.equal(last().sent.at(-1).params.from, "head");
  last().answer({ agents: { a: attached({ head: 1, snapshot }), b: attached({ head: 2, snapshot }), d: attached({ head: 1, snapshot }) } });
  const again = last().sent.slice(-2).map(({ params }) => [params.agent, params.from]);
  assert.deepEqual([["b", { epoch: "e1", seq: 0 }], ["d", { epoch: "e1", seq: 0 }]], again);
  last().events(2, text(2));
  assert.deepEqual([[1, 1, "<1>"], "gone", [2, 2, "<2>"]], await take(follower, 3));
  onward.close();
});

test("a full queue is detached and gone on with when it is empty", async () => {
  const onward = client();
  last().welcome();
  const follower = onward.follow("a", { since: "start", maxQueued: 2 });
  last().answer(attached());
  last().events(1, text(1), text(2));
  last().events(3, text(3));
  assert.equal(last().sent.at(-1).method, "agent.detach");
  await take(follower, 2);
  assert.deepEqual({ epoch: "e1", seq: 2 }, last().sent.at(-1).params.from);
  last().answer(attached({ head: 3 }));
  last().events(3, text(3));
  assert.deepEqual([[3, 3, "<3>"]], await take(follower, 1));
  onward.close();
});

test("leaving a loop detaches, and the agent may be followed again; not twice at a time", async () => {
  const onward = client();
  last().welcome();
  const follower = onward.follow("a", { since: "start" });
  last().answer(attached());
  last().events(1, text(1));
  assert.throws(() => onward.follow("*"), /follow an agent once/);
  for await (const item of follower) {
    assert.equal(item.kind, "event");
    break;
  }
  assert.equal(last().sent.at(-1).method, "agent.detach");
  onward.follow("*");
  onward.close();
});

test("it ends with the agent, and an agent that is not there is told", async () => {
  const onward = client();
  last().welcome();
  const follower = onward.follow("a", { since: "start" });
  last().answer(attached());
  last().events(1, { type: "agent_stopped", agent: "a", reason: "enough" });
  const kinds = [];
  for await (const item of follower) kinds.push(item.kind === "event" && item.event.type);
  assert.deepEqual(["agent_stopped"], kinds);
  const other = onward.follow("b");
  last().refuse("not_found");
  await assert.rejects(other.next(), /not_found/);
  onward.close();
});

test("closing ends everything, and says goodbye", async () => {
  const states = [];
  const onward = client({ onstate: ({ state }) => states.push(state) });
  last().welcome();
  const waiting = assert.rejects(onward.ping(), /has been closed/);
  onward.close();
  await waiting;
  await assert.rejects(onward.ping(), Disconnected);
  await pass(1000);
  assert.deepEqual([1, 1000, ["connecting", "live", "over"]], [sockets.length, last().closedWith, states]);
});

test("what is no text is replaced, as the server takes none of it", async () => {
  const onward = client();
  last().welcome();
  void onward.steer("r", "a\ud800b\u{1f600}").catch(() => {});
  assert.equal(last().sent.at(-1).params.text, "a\ufffdb\u{1f600}");
  onward.close();
});
