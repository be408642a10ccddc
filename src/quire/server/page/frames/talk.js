// How a frame talks with the page: texts and themes come in from the parent only, sizes and errors go out to it.

/**
 * @typedef {"light" | "dark"} Theme
 * @typedef {{ turn: number, text: string, theme: Theme }} Order
 * @typedef {(order: Order, place: HTMLElement) => void | Promise<void>} Draw
 */

// The document's own origin is opaque; its address still says which origin served it, and the page is of the same one.
const home = new URL(location.href).origin;

/**
 * Draw each text that the page sends, one after the other, and say what came of it.
 *
 * @param {Draw} draw
 */
export function serve(draw) {
  const place = /** @type {HTMLElement} */ (document.getElementById("place"));
  let queue = Promise.resolve();
  let turn = 0;
  addEventListener("message", (event) => {
    const order = readOrder(event);
    if (!order) return;
    turn = order.turn;
    queue = queue.then(() => perform(draw, order, place));
  });
  addEventListener("resize", () => {
    if (place.firstElementChild) sendSize(turn, place);
  });
  send({ type: "ready" });
}

/**
 * @param {Draw} draw
 * @param {Order} order
 * @param {HTMLElement} place
 */
async function perform(draw, order, place) {
  document.documentElement.dataset.theme = order.theme;
  try {
    await draw(order, place);
    sendSize(order.turn, place);
  } catch (error) {
    place.replaceChildren();
    const message = error instanceof Error ? error.message : String(error);
    send({ type: "error", turn: order.turn, message: message.slice(0, 2000) });
  }
}

/**
 * @param {MessageEvent} event
 * @returns {Order | null}
 */
function readOrder(event) {
  if (parent === self || event.source !== parent || event.origin !== home) return null;
  const { turn, text, theme } = event.data ?? {};
  if (typeof turn !== "number" || typeof text !== "string") return null;
  return { turn, text, theme: theme === "dark" ? "dark" : "light" };
}

/**
 * @param {number} turn
 * @param {Element} place
 */
function sendSize(turn, place) {
  send({ type: "size", turn, height: Math.ceil(place.getBoundingClientRect().height) });
}

/** @param {object} message */
function send(message) {
  parent.postMessage(message, home);
}
