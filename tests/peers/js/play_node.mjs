// Plays a scenario with the client of the product in node: `node play_node.mjs SOCKET`, the scenario on stdin.
// SOCKET is `node` for the WebSocket of node, or `ws` for that of npm, as programs on older versions use it.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import * as module from "../../../actors/client/js/onward.mjs";
import { play } from "./play.mjs";

const { url, token, ...scenario } = JSON.parse(readFileSync(0, "utf-8"));
const options = { url, token };
if (process.argv[2] === "ws") {
  const { WebSocket } = createRequire(`${process.env.NODE_MODULES}/`)("ws");
  options.open = (address, protocol, headers) => new WebSocket(address, protocol, { headers });
}
console.log(JSON.stringify(await play(module, scenario, options)));
