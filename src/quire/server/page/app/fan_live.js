// The states of the items of a fan-out while its run goes on: changed by the events of the feed until the server is
// asked again. Pure.

/**
 * @param {string} letters the state of each item, as the server has said it
 * @param {string} path of the fan
 * @param {any[]} events of the run since then
 * @returns {string}
 */
export function withItems(letters, path, events) {
  const states = letters.split("");
  const inside = `${path}/`;
  for (const event of events) {
    if (event.path !== path && !event.path?.startsWith(inside)) continue;
    if (event.type === "fan_item" && Number.isInteger(event.index)) {
      if (event.index < states.length) states[event.index] = event.state === "failed" ? "f" : "d";
    } else if (event.type === "effect" || event.type === "question") {
      const found = /^(\w+)\[(\d+)\]/.exec(event.path.slice(inside.length));
      // Rounds of a loop are counted from 1.
      const at = found ? Number(found[2]) - Number(found[1] === "repeat") : -1;
      if (event.type === "question" && at in states) states[at] = "w";
      else if (states[at] === "p" || states[at] === "w") states[at] = "r";
    }
  }
  return states.join("");
}
