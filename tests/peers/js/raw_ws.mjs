// Plays a scenario with npm's `ws` and nothing of the product: what somebody writes who has read the protocol.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const { WebSocket } = createRequire(`${process.env.NODE_MODULES}/`)("ws");
const { url, token, agent, on } = JSON.parse(readFileSync(0, "utf-8"));
const seen = { numbers: [], types: [], answers: [] };
const open = new Map(); // commands without a reply, by id: given again on the next connection
const turns = {};
let socket, ids = 0, keys = 0, epoch, last = 0, attaching = false, over = false, queue = Promise.resolve();

function ask(method, params) {
  return new Promise((resolve) => {
    const id = ++ids;
    const text = JSON.stringify({ jsonrpc: "2.0", id, method, params });
    open.set(id, { text, resolve });
    if (socket.readyState === WebSocket.OPEN && socket.ready) socket.send(text);
  });
}

function connect() {
  socket = new WebSocket(url, "onward.v1", { headers: { Authorization: `Bearer ${token}` } });
  attaching = true;
  const from = epoch === undefined ? "start" : { epoch, seq: last };
  socket.on("open", () => {
    socket.send(JSON.stringify({ jsonrpc: "2.0", id: "hello", method: "hello", params: { client: "raw ws" } }));
    socket.send(JSON.stringify({ jsonrpc: "2.0", id: "attach", method: "agent.attach", params: { agent, from } }));
  });
  socket.on("message", (data) => {
    const frame = JSON.parse(data.toString());
    for (const message of Array.isArray(frame) ? frame : [frame]) received(message);
  });
  socket.on("error", () => {});
  socket.on("close", () => over || setTimeout(connect, 30));
}

function received(message) {
  if (message.id === "attach") {
    if (message.result.snapshot) throw new Error("events were lost");
    epoch = message.result.epoch;
    attaching = false;
    socket.ready = true;
    for (const { text } of open.values()) socket.send(text);
  } else if (message.method === "events" && !attaching) {
    let number = message.params.seq;
    for (const event of message.params.events) {
      if (number > last + 1) throw new Error(`${number} behind ${last}`);
      if (number === last + 1) apply((last = number), event);
      number += event.n ?? 1;
    }
  } else if (open.has(message.id)) {
    const { resolve } = open.get(message.id);
    open.delete(message.id);
    resolve(message);
  }
}

function apply(number, event) {
  seen.numbers.push(number);
  seen.types.push(event.type);
  const commands = on[event.type]?.[(turns[event.type] ??= 0)];
  turns[event.type] += 1;
  if (commands) {
    const answers = [];
    seen.answers.push(answers);
    for (const command of commands) queue = queue.then(async () => answers.push(await give(event, command)));
  }
  if (["run_finished", "run_failed", "run_cancelled"].includes(event.type))
    queue.then(() => {
      over = true;
      console.log(JSON.stringify(seen));
      socket.close(1000);
    });
}

async function give(event, { method, params }) {
  const about = method.startsWith("run.") ? { run: event.run } : { request: event.request, digest: event.digest };
  const { error, result } = await ask(method, { ...about, idem: `key-${++keys}`, ...params });
  if (error) return error.data?.code ?? String(error.code);
  return result.status ? result.status + (result.replayed ? ", replayed" : "") : "done";
}

connect();
ask("run.start", { agent, prompt: "look around", idem: "start" });
