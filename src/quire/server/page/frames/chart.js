// Draws a Chart.js chart of a model. The configuration is JSON, so it holds no function that could run.

import { serve } from "./talk.js";

/** @typedef {{ destroy: () => void }} Drawing */

const TYPES = ["bar", "bubble", "doughnut", "line", "pie", "polarArea", "radar", "scatter"];
const NAMES_OF_PROTOTYPES = ["__proto__", "constructor", "prototype"];

/** Chart.js is a classic script that sets a global name. */
const Chart = Reflect.get(globalThis, "Chart");

/** @type {Drawing | undefined} */
let drawing;

serve(({ text, theme }, place) => {
  const { type, data, options } = readConfiguration(text);
  drawing?.destroy();
  const canvas = document.createElement("canvas");
  place.replaceChildren(canvas);
  // Not `defaults.borderColor`: Chart.js gives datasets its own colours only while that is untouched.
  Chart.defaults.color = theme === "dark" ? "#c9d1d9" : "#424a53";
  Chart.defaults.scale.grid.color = theme === "dark" ? "#30363d" : "#d8dee4";
  drawing = new Chart(canvas, {
    type,
    data,
    options: { ...options, animation: false, animations: false, transitions: {}, responsive: true },
  });
});

/** @param {string} text */
function readConfiguration(text) {
  const value = parse(text);
  if (!isObject(value) || !isObject(value.data)) throw new Error("A chart is a JSON object with `type` and `data`.");
  if (!TYPES.includes(value.type)) throw new Error(`The type of a chart is one of ${TYPES.join(", ")}.`);
  return { type: value.type, data: value.data, options: isObject(value.options) ? value.options : {} };
}

/** @param {string} text */
function parse(text) {
  try {
    return JSON.parse(text, (key, value) => (NAMES_OF_PROTOTYPES.includes(key) ? undefined : value));
  } catch (error) {
    throw new Error(`This chart is not JSON, so it is not drawn: ${/** @type {Error} */ (error).message}`);
  }
}

/**
 * @param {any} value
 * @returns {value is Record<string, any>}
 */
function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
