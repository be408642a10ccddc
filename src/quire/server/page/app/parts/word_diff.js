// Differences between two texts, word by word: pure, so that it can be tested without a page.

/** @typedef {{ kind: "same" | "old" | "new", text: string }} Piece */

const MOST_WORDS = 6000;
const MOST_EDITS = 800;

/**
 * @param {string} a
 * @param {string} b
 * @returns {Piece[]} the pieces of both texts in order; the kept ones and the old ones are `a`, the kept and the new are `b`
 */
export function wordDiff(a, b) {
  const [of_a, of_b] = [words(a), words(b)];
  let head = 0;
  while (head < of_a.length && head < of_b.length && of_a[head] === of_b[head]) head++;
  let tail = 0;
  while (
    tail < of_a.length - head && tail < of_b.length - head &&
    of_a[of_a.length - 1 - tail] === of_b[of_b.length - 1 - tail]
  ) tail++;
  const middle = edits(of_a.slice(head, of_a.length - tail), of_b.slice(head, of_b.length - tail));
  return joined([
    { kind: "same", text: of_a.slice(0, head).join("") },
    ...middle,
    { kind: "same", text: of_a.slice(of_a.length - tail).join("") },
  ]);
}

/**
 * @param {string} text
 * @returns {string[]} words, spaces and signs; lines if there are too many words
 */
function words(text) {
  const found = text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [];
  return found.length > MOST_WORDS ? text.match(/[^\n]*\n|[^\n]+$/g) ?? [] : found;
}

/**
 * The algorithm of Myers. Texts that have little in common are not aligned: one replaces the other.
 *
 * @param {string[]} a
 * @param {string[]} b
 * @returns {Piece[]}
 */
function edits(a, b) {
  const most = Math.min(a.length + b.length, MOST_EDITS);
  const offset = most + 1;
  const ends = new Int32Array(2 * most + 3);
  /** @type {Int32Array[]} */
  const trace = [];
  for (let cost = 0; cost <= most; cost++) {
    trace.push(ends.slice());
    for (let line = -cost; line <= cost; line += 2) {
      const down = line === -cost || (line !== cost && ends[offset + line - 1] < ends[offset + line + 1]);
      let x = down ? ends[offset + line + 1] : ends[offset + line - 1] + 1;
      while (x < a.length && x - line < b.length && a[x] === b[x - line]) x++;
      ends[offset + line] = x;
      if (x >= a.length && x - line >= b.length) return walkBack(trace, a, b, offset);
    }
  }
  return [{ kind: "old", text: a.join("") }, { kind: "new", text: b.join("") }];
}

/**
 * @param {Int32Array[]} trace
 * @param {string[]} a
 * @param {string[]} b
 * @param {number} offset
 * @returns {Piece[]}
 */
function walkBack(trace, a, b, offset) {
  /** @type {Piece[]} */
  const found = [];
  let [x, y] = [a.length, b.length];
  for (let cost = trace.length - 1; cost >= 0; cost--) {
    const ends = trace[cost];
    const line = x - y;
    const down = line === -cost || (line !== cost && ends[offset + line - 1] < ends[offset + line + 1]);
    const before = down ? line + 1 : line - 1;
    const beforeX = cost ? ends[offset + before] : 0;
    const beforeY = cost ? beforeX - before : 0;
    while (x > beforeX && y > beforeY) {
      found.push({ kind: "same", text: a[--x] });
      y--;
    }
    if (cost) found.push(down ? { kind: "new", text: b[--y] } : { kind: "old", text: a[--x] });
  }
  return found.reverse();
}

/**
 * @param {Piece[]} pieces
 * @returns {Piece[]} without empty ones, neighbours of a kind as one, the old before the new
 */
function joined(pieces) {
  /** @type {Piece[]} */
  const found = [];
  let old = "", fresh = "";
  const flush = () => {
    if (old) found.push({ kind: "old", text: old });
    if (fresh) found.push({ kind: "new", text: fresh });
    old = fresh = "";
  };
  for (const { kind, text } of pieces) {
    if (!text) continue;
    // A single space between two changes is part of the change: the pieces stay readable.
    if (kind === "same" && (old || fresh) && /^[ \t]$/.test(text)) {
      old += text;
      fresh += text;
    } else if (kind === "same") {
      flush();
      const last = found.at(-1);
      if (last?.kind === "same") last.text += text;
      else found.push({ kind, text });
    } else if (kind === "old") old += text;
    else fresh += text;
  }
  flush();
  return found;
}
