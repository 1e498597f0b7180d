// Reads JSON lines of `[items, now]` and prints the state that each comes to. Maps become lists of pairs.
import { createInterface } from "node:readline";
import { EVENT_TYPES, mayReconnect, newState, reduce, waitSeconds } from "../../../actors/client/js/onward.mjs";

const plain = (_key, value) => (value instanceof Map ? [...value] : value instanceof Set ? [...value] : value);
for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  if (asked === "types") console.log(JSON.stringify([...EVENT_TYPES]));
  else if (asked === "waits") {
    const codes = Array.from({ length: 5100 }, (_, code) => code).filter(mayReconnect);
    const waits = [0, 1, 2, 5, 6, 7, 50, 5000].map((tries) => waitSeconds(tries, 0.5));
    console.log(JSON.stringify({ codes, waits }));
  } else {
    let state = newState("a", "e");
    for (const [item, now] of asked) state = reduce(state, item, now);
    console.log(JSON.stringify(state, plain));
  }
}
