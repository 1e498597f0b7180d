// Plays a scenario with the client of the product. One function without imports: a page runs it too.

/**
 * @param {typeof import("../../../actors/client/js/onward.mjs")} module
 * @param {any} scenario
 * @param {any} options  For the client.
 */
export async function play({ Onward, WireRefused }, { agent, on }, options) {
  const onward = new Onward({ firstSeconds: 0.05, ...options });
  const seen = { numbers: [], types: [], answers: [] };
  const turns = {};
  const give = async (event, { method, params }) => {
    try {
      const { decision, message, discard_tool_calls: discard, tool_message: toolMessage, reason, ...rest } = params;
      const key = `key-${Math.random().toString(36).slice(2)}`;
      let result;
      if (method === "run.steer") result = await onward.steer(event.run, rest.text);
      else if (method === "run.cancel") result = await onward.cancel(event.run, { ...rest, reason });
      else if (rest.idem || rest.digest || rest.request || event.type.split("_")[0] !== method.split(".")[0])
        result = await onward.ask(method, { request: event.request, digest: event.digest, idem: key, ...params });
      else if (method === "continuation.decide")
        result = await onward.decide(event, decision, { message, discard, toolMessage });
      else result = await onward.decideApproval(event, decision, { reason, arguments: rest.arguments });
      return result.status ? result.status + (result.replayed ? ", replayed" : "") : "done";
    } catch (error) {
      if (error instanceof WireRefused) return error.code;
      throw error;
    }
  };
  try {
    await onward.connected();
    const events = onward.follow(agent, { since: "start" });
    await onward.start(agent, "look around");
    for await (const item of events) {
      if (item.kind !== "event") throw new Error(`what came is ${item.kind}`);
      const { number, event } = item;
      seen.numbers.push(number);
      seen.types.push(event.type);
      const commands = on[event.type]?.[(turns[event.type] ??= 0)];
      turns[event.type] += 1;
      if (commands) {
        const answers = [];
        for (const command of commands) answers.push(await give(event, command));
        seen.answers.push(answers);
      }
      if (["run_finished", "run_failed", "run_cancelled"].includes(event.type)) break;
    }
    return seen;
  } finally {
    onward.close();
  }
}
