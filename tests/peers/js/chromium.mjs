// Plays scenarios in a page of the gateway in headless Chromium: `node chromium.mjs EXECUTABLE`, on stdin the scenario
// with `page`, the address that a person is given, its ticket included.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { play } from "./play.mjs";

const { chromium } = createRequire(`${process.env.NODE_MODULES}/`)("playwright-core");
const { page: address, agent, on } = JSON.parse(readFileSync(0, "utf-8"));
const profile = mkdtempSync(join(tmpdir(), "onward-chromium-"));
const quiet = "--disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync";
const browser = await chromium.launchPersistentContext(profile, {
  executablePath: process.argv[2],
  args: ["--no-sandbox", ...quiet.split(" ")],
});
try {
  const page = await browser.newPage();
  const complaints = [];
  page.on("console", (message) => {
    const icon = message.location().url.endsWith("/favicon.ico"); // which a browser asks for by itself
    if (["error", "warning"].includes(message.type()) && !icon) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  await page.goto(address);
  // As one expression: the page's own rules let nothing be made from a string in it.
  const seen = await page.evaluate(`(async () => {
    const module = await import("/onward.js");
    const tickets = [await module.openSession(), await module.openSession()];
    const states = [];
    const seen = await (${play})(module, ${JSON.stringify({ agent, on })}, { onstate: ({ state }) => states.push(state) });
    await new Promise((resolve) => setTimeout(resolve));
    return { ...seen, page: { tickets, hash: location.hash, cookie: document.cookie, states } };
  })()`);
  console.log(JSON.stringify({ ...seen, complaints }));
} finally {
  await browser.close();
  rmSync(profile, { recursive: true, force: true });
}
