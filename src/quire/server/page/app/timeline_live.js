// A timeline that goes on while its run does: the events of the feed are added to the columns that were fetched. Pure.

/** @typedef {import("./timeline_geometry.js").Timeline} Timeline */
/** @typedef {import("./run_store.js").Step} Step */

/**
 * @param {Timeline} timeline
 * @param {any[]} events of the feed, in their order; those that the timeline knows are left out
 * @param {Step[]} steps of the run, in the order of the document
 * @returns {Timeline} the same one if nothing is new
 */
export function withEvents(timeline, events, steps) {
  const fresh = events.filter((one) => one.seq > timeline.seq && (one.type === "effect" || one.type === "question"));
  if (!fresh.length) return timeline;
  const places = fresh.map((one) => stepOf(one.path, steps));
  const used = new Set([...timeline.lanes.map((lane) => lane.path), ...places]);
  const lanes = steps.filter((step) => used.has(step.path)).map(({ path, label, way, title, status }) => ({
    path,
    label,
    way,
    title,
    status,
  }));
  const numbers = new Map(lanes.map((lane, at) => [lane.path, at]));
  const moved = timeline.lanes.map((lane) => numbers.get(lane.path) ?? -1);
  const { effects, states } = timeline;
  const next = {
    ...timeline,
    lanes,
    kinds: [...timeline.kinds],
    effects: {
      path: [...effects.path],
      lane: effects.lane.map((lane) => moved[lane] ?? -1),
      kind: [...effects.kind],
      state: [...effects.state],
      at: [...effects.at],
      elapsed: [...effects.elapsed],
    },
    waits: timeline.waits.map((wait) => ({ ...wait, lane: moved[wait.lane] ?? -1 })),
  };
  fresh.forEach((event, at) => {
    const lane = numbers.get(places[at]) ?? -1;
    const ended = event.at - timeline.start;
    next.seq = Math.max(next.seq, event.seq);
    next.end = Math.max(next.end, ended);
    if (event.type === "question") {
      next.waits.push({ kind: "question", path: event.path, lane, at: ended, until: null });
      return;
    }
    const open = next.waits.find((wait) => wait.path === event.path && wait.until === null);
    if (open) open.until = ended;
    if (!next.kinds.includes(event.kind)) next.kinds.push(event.kind);
    next.effects.path.push(event.path);
    next.effects.lane.push(lane);
    next.effects.kind.push(next.kinds.indexOf(event.kind));
    next.effects.state.push(Math.max(0, states.indexOf(event.state)));
    next.effects.at.push(Math.max(0, ended - event.elapsed));
    next.effects.elapsed.push(event.elapsed);
  });
  return next;
}

/**
 * @param {string} path
 * @param {Step[]} steps
 * @returns {string} the path of the step that a path belongs to; empty if it belongs to none
 */
export function stepOf(path, steps) {
  const known = new Set(steps.map((step) => step.path));
  let at = path;
  while (at && !known.has(at)) at = at.slice(0, Math.max(0, at.lastIndexOf("/")));
  return at;
}
