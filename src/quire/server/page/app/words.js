// Words and numbers as people read them: ages, durations, money, and the words and signs of each status.

/** @typedef {{ word: string, icon: string, tone: string }} Shown */

/** How a status is shown: never by colour alone. @type {Record<string, Shown>} */
export const STATUSES = {
  pending: { word: "not begun", icon: "dot", tone: "quiet" },
  running: { word: "running", icon: "running", tone: "live" },
  interrupted: { word: "interrupted", icon: "broken", tone: "warn" },
  paused: { word: "paused", icon: "pause", tone: "warn" },
  awaiting_input: { word: "waits for you", icon: "question", tone: "wait" },
  completed: { word: "completed", icon: "check", tone: "good" },
  failed: { word: "failed", icon: "cross", tone: "bad" },
  cancelled: { word: "cancelled", icon: "stop", tone: "quiet" },
  expired: { word: "expired", icon: "clock", tone: "quiet" },
  skipped: { word: "skipped", icon: "skip", tone: "quiet" },
};

/**
 * How a status is shown. A failure that was survived is worth a look, but nothing is wrong with the run.
 *
 * @param {string} status
 * @param {string} [survived] the message of that failure
 */
export function shown(status, survived) {
  if (survived) return { word: status === "failed" ? "failed, survived" : "survived", icon: "warning", tone: "warn" };
  return STATUSES[status] ?? { word: status.replaceAll("_", " "), icon: "dot", tone: "quiet" };
}

/** @param {number} seconds since 1970 */
export function ago(seconds, now = Date.now() / 1000) {
  const age = now - seconds;
  return age < 5 ? "just now" : `${span(age)} ago`;
}

/**
 * The largest unit of a time: `3 min`, `2 h`, `5 d`.
 *
 * @param {number} seconds
 */
export function span(seconds) {
  if (seconds < 60) return `${Math.max(0, Math.floor(seconds))} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

/**
 * A duration as exactly as people want it: `0.4 s`, `12 s`, `3 min 20 s`, `2 h 11 min`.
 *
 * @param {number} seconds
 */
export function duration(seconds) {
  if (seconds < 0.1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)} min${whole % 60 ? ` ${whole % 60} s` : ""}`;
  if (whole < 86_400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / 86_400)} d ${Math.floor((whole % 86_400) / 3600)} h`;
}

/**
 * @param {number | null | undefined} dollars null if the price is not known
 */
export function money(dollars) {
  if (dollars === null || dollars === undefined) return "price unknown";
  if (dollars === 0) return "$0";
  return dollars < 0.01 ? `$${dollars.toPrecision(2)}` : `$${dollars.toFixed(2)}`;
}

/** @param {number} count */
export function number(count) {
  return count.toLocaleString("en");
}

/**
 * @param {number} count
 * @param {string} one
 * @param {string} [many]
 */
export function plural(count, one, many = `${one}s`) {
  return `${number(count)} ${count === 1 ? one : many}`;
}

/** A number of open questions: the server counts no more than one beyond a thousand. @param {number} count */
export function upTo(count) {
  return count > 1000 ? "1,000+" : String(count);
}

/** @param {number} seconds since 1970 */
export function moment(seconds) {
  return new Date(seconds * 1000).toLocaleString("en-GB", {
    day: "numeric",
    month: "short",
    year: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
  });
}

/**
 * @param {string} text
 * @param {number} most
 */
export function cut(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}
