// The live feed: one event stream for all tabs of this browser. The tab that holds a lock reads the stream and passes
// the events on; when it closes, another tab takes the lock and goes on where it was.

import { effect, signal } from "./html.js";
import { endSession, fetchWithToken, token } from "./session.js";

const BASE = new URL("api/v1/events", document.baseURI).pathname;
const LONGEST_PAUSE = 10_000;
/** A server that says it stops is not asked again before it has. */
const CLOSING_PAUSE = 2000;
let closing = false;
const SHORTEST_REREAD = 1000;
let rereadAt = 0;

/** @typedef {{ event: string, data: any }} Frame */
/** @typedef {(frame: Frame) => void} Listener */

/** Milliseconds since 1970 at which the server was lost; 0 while it is there. */
export const lostSince = signal(0);

/** What the server says about a store that it cannot use now; empty while the store works. */
export const storeTrouble = signal("");

/** @type {Set<Listener>} */
const listeners = new Set();
/** Runs that this tab follows, with the last number that it has seen. @type {Map<string, number>} */
const followed = new Map();
/** Runs that the other tabs follow, by tab. @type {Map<string, { runs: Record<string, number>, at: number }>} */
const others = new Map();

const tab = String(Math.random()).slice(2);
const channel = new BroadcastChannel("quire-feed");
let leads = false;
/** @type {AbortController | null} */
let stream = null;
/** The runs of the open stream. @type {Map<string, number>} */
let streamed = new Map();

/**
 * Calls `listener` with every event about the workspace and the followed runs.
 *
 * @param {Listener} listener
 * @returns {() => void} stops that
 */
export function listen(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/**
 * Follows a run from an event on.
 *
 * @param {string} run
 * @param {number} seq the last number that is known
 * @returns {() => void} stops that
 */
export function follow(run, seq) {
  followed.set(run, seq);
  announce();
  return () => {
    followed.delete(run);
    announce();
  };
}

/** Opens the stream again: the server then sends the texts that models are writing from their first letter. */
export function reread() {
  if (Date.now() - rereadAt < SHORTEST_REREAD) return;
  rereadAt = Date.now();
  if (leads) stream?.abort();
  else channel.postMessage({ kind: "again" });
}

/** Begins to read. Called once. */
export function startFeed() {
  channel.onmessage = ({ data }) => hear(data);
  addEventListener("pagehide", () => channel.postMessage({ kind: "bye", tab }));
  navigator.locks.request("quire-feed", async () => {
    leads = true;
    channel.postMessage({ kind: "who" });
    await new Promise(() => keepReading());
  });
  effect(() => {
    if (token.value) stream?.abort();
  });
}

function announce() {
  const runs = Object.fromEntries(followed);
  if (leads) renew();
  else channel.postMessage({ kind: "want", tab, runs });
}

/** @param {any} message */
function hear(message) {
  switch (message.kind) {
    case "frame":
      return deliver(message.frame);
    case "state":
      lostSince.value = message.lostSince;
      return;
    case "who":
      return channel.postMessage({ kind: "want", tab, runs: Object.fromEntries(followed) });
    case "again":
      return reread();
    case "bye":
      others.delete(message.tab);
      return;
    case "want":
      others.set(message.tab, { runs: message.runs, at: Date.now() });
      if (leads) {
        channel.postMessage({ kind: "state", lostSince: lostSince.value });
        renew();
      }
  }
}

/** Every run that a tab follows, each with the lowest number that a tab has seen. */
function wanted() {
  const all = new Map(followed);
  for (const { runs } of others.values()) {
    for (const [run, seq] of Object.entries(runs)) all.set(run, Math.min(seq, all.get(run) ?? seq));
  }
  return all;
}

/** Opens the stream again if a tab follows a run that the stream does not have from there on. */
function renew() {
  for (const [run, seq] of wanted()) {
    const has = streamed.get(run);
    if (has === undefined || seq < has) return stream?.abort();
  }
}

async function keepReading() {
  let pause = 500;
  for (;;) {
    if (!token.value) {
      await new Promise((resolve) => setTimeout(resolve, 200));
      continue;
    }
    stream = new AbortController();
    const began = Date.now();
    try {
      await read(stream.signal);
    } catch {
      if (stream.signal.aborted) continue;
    }
    say(lostSince.value || Date.now());
    if (Date.now() - began > 5000) pause = 500;
    if (closing) pause = Math.max(pause, CLOSING_PAUSE);
    await new Promise((resolve) => setTimeout(resolve, pause));
    pause = Math.min(pause * 2, LONGEST_PAUSE);
  }
}

/** @param {number} since */
function say(since) {
  if (lostSince.value === since) return;
  lostSince.value = since;
  channel.postMessage({ kind: "state", lostSince: since });
}

/** @param {AbortSignal} signal */
async function read(signal) {
  streamed = wanted();
  const query = new URLSearchParams([...streamed].map(([run, seq]) => ["run", `${run}:${seq}`]));
  const response = await fetchWithToken(`${BASE}?${query}`, { headers: { Accept: "text/event-stream" }, signal });
  if (!response.ok || !response.body) throw new Error(`the stream was refused: ${response.status}`);
  say(0);
  storeTrouble.value = ""; // the server says it again
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop() ?? "";
    for (const text of parts) {
      const frame = parse(text);
      if (!frame) continue;
      closing = frame.event === "closing";
      channel.postMessage({ kind: "frame", frame });
      deliver(frame);
    }
  }
}

/**
 * @param {string} text
 * @returns {Frame | null}
 */
function parse(text) {
  let event = "", data = "";
  for (const line of text.split("\n")) {
    if (line.startsWith("event: ")) event = line.slice(7);
    else if (line.startsWith("data: ")) data = line.slice(6);
  }
  return event ? { event, data: JSON.parse(data) } : null;
}

/** @param {Frame} frame */
function deliver(frame) {
  if (frame.event === "store") storeTrouble.value = frame.data.error;
  if (frame.event === "closing") endSession(token.value);
  const { run, seq } = frame.data ?? {};
  if (leads && run && seq) streamed.set(run, seq);
  if (frame.event === "reset" && followed.has(run)) followed.set(run, 0);
  else if (run && seq) {
    const seen = followed.get(run);
    if (seen === undefined || seq <= seen) return;
    followed.set(run, seq);
  }
  for (const listener of listeners) listener(frame);
}
