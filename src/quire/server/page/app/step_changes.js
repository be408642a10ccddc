// What an event of a run changes in a step, until the server is asked again. Pure.

/** Inside of a loop: its rounds are counted, not the fans in each of them. */
const LOOP = /\/(fold|repeat)\[/;

/**
 * @param {import("./run_store.js").Step} step
 * @param {any} event
 * @param {boolean} own true if the event is about the step itself and not about something within it
 */
export function change(step, event, own) {
  switch (event.type) {
    case "step_started":
      if (own) {
        const began = { status: "running", message: "", survived: undefined, items: undefined, started_at: event.at };
        Object.assign(step, began);
      }
      return;
    case "step_completed":
      if (own) {
        Object.assign(step, { status: "completed", survived: event.survived?.message });
        if (step.items?.rounds) step.items.total = step.items.done;
      }
      return;
    case "step_skipped":
      if (own) step.status = "skipped";
      return;
    case "step_failed":
      if (own) Object.assign(step, { status: "failed", message: event.message ?? "" });
      return;
    case "question":
      step.status = "awaiting_input";
      return;
    case "fan_started":
      if (LOOP.test(event.path)) return;
      if (!step.items) step.items = { total: 0, done: 0, failed: 0 };
      if (event.rounds) step.items.rounds = true;
      step.items.total += event.total ?? 0;
      return;
    case "fan_item":
      if (!step.items || LOOP.test(event.path)) return;
      if (event.state === "failed") step.items.failed++;
      else step.items.done++;
      return;
    case "effect":
      if (step.status === "awaiting_input") step.status = "running";
      step.elapsed += event.elapsed ?? 0;
      step.input_tokens += event.input_tokens ?? 0;
      step.output_tokens += event.output_tokens ?? 0;
      if (step.cost !== null && event.cost !== undefined) {
        step.cost = event.cost === null ? null : step.cost + event.cost;
      }
  }
}
