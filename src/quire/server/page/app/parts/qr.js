// QR codes as ISO/IEC 18004 describes them: a text as bytes, error correction level M, the mask with the lowest penalty.

/** For versions 1 to 20 at level M: codewords for correction in a block, and the number of blocks. */
const CORRECTION = [10, 16, 26, 18, 24, 16, 18, 22, 22, 26, 30, 22, 22, 24, 24, 28, 28, 26, 26, 26];
const BLOCKS = [1, 1, 1, 2, 2, 4, 4, 4, 5, 5, 5, 8, 9, 9, 10, 10, 11, 13, 14, 16];

/** @type {((x: number, y: number) => boolean)[]} */
const MASKS = [
  (x, y) => (x + y) % 2 === 0,
  (_x, y) => y % 2 === 0,
  (x) => x % 3 === 0,
  (x, y) => (x + y) % 3 === 0,
  (x, y) => (Math.floor(y / 2) + Math.floor(x / 3)) % 2 === 0,
  (x, y) => (x * y) % 2 + (x * y) % 3 === 0,
  (x, y) => ((x * y) % 2 + (x * y) % 3) % 2 === 0,
  (x, y) => ((x + y) % 2 + (x * y) % 3) % 2 === 0,
];

/**
 * The modules of a QR code, row by row; true is dark.
 *
 * @param {string} text
 * @returns {boolean[][] | null} null for a text that is too long
 */
export function qrModules(text) {
  const bytes = new TextEncoder().encode(text);
  const version = CORRECTION.findIndex((_, at) => bytes.length <= room(at + 1)) + 1;
  if (!version) return null;
  const words = withCorrection(data(bytes, version), version);
  const { modules, fixed } = patterns(version);
  place(words, modules, fixed);
  let best = modules, least = Infinity;
  MASKS.forEach((mask, at) => {
    const masked = modules.map((row, y) => row.map((dark, x) => fixed[y][x] ? dark : dark !== mask(x, y)));
    format(masked, at);
    const found = penalty(masked);
    if (found < least) [best, least] = [masked, found];
  });
  return best;
}

/** All codewords of a version, data and correction. @param {number} version */
function codewords(version) {
  let modules = (16 * version + 128) * version + 64;
  if (version >= 2) {
    const centres = Math.floor(version / 7) + 2;
    modules -= (25 * centres - 10) * centres - 55;
    if (version >= 7) modules -= 36;
  }
  return Math.floor(modules / 8);
}

/** @param {number} version */
function dataWords(version) {
  return codewords(version) - CORRECTION[version - 1] * BLOCKS[version - 1];
}

/** The bytes of text that a version holds: mode and length come before them. @param {number} version */
function room(version) {
  return dataWords(version) - (version < 10 ? 2 : 3);
}

/**
 * @param {Uint8Array} bytes
 * @param {number} version
 */
function data(bytes, version) {
  /** @type {number[]} */
  const bits = [];
  /** @param {number} value @param {number} count */
  const put = (value, count) => {
    for (let at = count - 1; at >= 0; at--) bits.push((value >> at) & 1);
  };
  put(0b0100, 4);
  put(bytes.length, version < 10 ? 8 : 16);
  bytes.forEach((byte) => put(byte, 8));
  const whole = dataWords(version) * 8;
  put(0, Math.min(4, whole - bits.length));
  put(0, (8 - bits.length % 8) % 8);
  for (let pad = 0xec; bits.length < whole; pad ^= 0xec ^ 0x11) put(pad, 8);
  return Array.from({ length: whole / 8 }, (_, at) => parseInt(bits.slice(at * 8, at * 8 + 8).join(""), 2));
}

/** Multiplies in the field of 256 elements. @param {number} a @param {number} b */
function times(a, b) {
  let product = 0;
  for (let bit = 7; bit >= 0; bit--) product = (product << 1) ^ ((product >> 7) * 0x11d) ^ (((b >> bit) & 1) * a);
  return product;
}

/** The codewords for correction of one block. @param {number[]} block @param {number} count */
function correction(block, count) {
  let divisor = [1];
  for (let at = 0, root = 1; at < count; at++, root = times(root, 2)) {
    const grown = [...divisor, 0];
    divisor.forEach((one, place) => (grown[place + 1] ^= times(one, root)));
    divisor = grown;
  }
  const rest = [...block, ...Array(count).fill(0)];
  for (let at = 0; at < block.length; at++) {
    const factor = rest[at];
    divisor.forEach((one, place) => (rest[at + place] ^= times(one, factor)));
  }
  return rest.slice(block.length);
}

/** Cuts the data into blocks, and mixes blocks and their correction. @param {number[]} words @param {number} version */
function withCorrection(words, version) {
  const count = BLOCKS[version - 1];
  const short = Math.floor(words.length / count), long = words.length % count;
  /** @type {number[][]} */
  const blocks = [];
  for (let at = 0, from = 0; at < count; at++) {
    const size = short + (at < count - long ? 0 : 1);
    blocks.push(words.slice(from, from += size));
  }
  const extra = blocks.map((block) => correction(block, CORRECTION[version - 1]));
  const mixed = [];
  for (let at = 0; at <= short; at++) for (const block of blocks) if (at < block.length) mixed.push(block[at]);
  for (let at = 0; at < CORRECTION[version - 1]; at++) for (const block of extra) mixed.push(block[at]);
  return mixed;
}

/** The fixed patterns of a version; `fixed` marks their modules, and those of format and version. @param {number} version */
function patterns(version) {
  const size = version * 4 + 17;
  const modules = Array.from({ length: size }, () => /** @type {boolean[]} */ (Array(size).fill(false)));
  const fixed = modules.map((row) => [...row]);
  /** @param {number} x @param {number} y @param {boolean} dark */
  const set = (x, y, dark) => {
    if (x < 0 || y < 0 || x >= size || y >= size) return;
    modules[y][x] = dark;
    fixed[y][x] = true;
  };
  for (let at = 0; at < size; at++) {
    set(6, at, at % 2 === 0);
    set(at, 6, at % 2 === 0);
  }
  for (const [cx, cy] of [[3, 3], [size - 4, 3], [3, size - 4]]) {
    for (let dy = -4; dy <= 4; dy++) {
      for (let dx = -4; dx <= 4; dx++) {
        const ring = Math.max(Math.abs(dx), Math.abs(dy));
        set(cx + dx, cy + dy, ring !== 2 && ring !== 4);
      }
    }
  }
  const centres = alignment(version, size);
  const last = centres.length - 1;
  centres.forEach((cx, i) =>
    centres.forEach((cy, j) => {
      if ((i === 0 && j === 0) || (i === 0 && j === last) || (i === last && j === 0)) return;
      for (let dy = -2; dy <= 2; dy++) {
        for (let dx = -2; dx <= 2; dx++) set(cx + dx, cy + dy, Math.max(Math.abs(dx), Math.abs(dy)) !== 1);
      }
    })
  );
  format(modules, 0, fixed);
  if (version >= 7) {
    let rest = version;
    for (let at = 0; at < 12; at++) rest = (rest << 1) ^ ((rest >> 11) * 0x1f25);
    const bits = (version << 12) | rest;
    for (let at = 0; at < 18; at++) {
      const a = size - 11 + at % 3, b = Math.floor(at / 3), dark = ((bits >> at) & 1) === 1;
      set(a, b, dark);
      set(b, a, dark);
    }
  }
  return { modules, fixed };
}

/** @param {number} version @param {number} size */
function alignment(version, size) {
  if (version === 1) return [];
  const count = Math.floor(version / 7) + 2;
  const step = Math.ceil((version * 4 + 4) / (count * 2 - 2)) * 2;
  const centres = [6];
  for (let at = size - 7; centres.length < count; at -= step) centres.splice(1, 0, at);
  return centres;
}

/** Writes level and mask, twice. @param {boolean[][]} modules @param {number} mask @param {boolean[][]} [fixed] */
function format(modules, mask, fixed) {
  const size = modules.length;
  let rest = mask; // Level M is 00.
  for (let at = 0; at < 10; at++) rest = (rest << 1) ^ ((rest >> 9) * 0x537);
  const bits = ((mask << 10) | rest) ^ 0x5412;
  /** @param {number} x @param {number} y @param {number} at */
  const set = (x, y, at) => {
    modules[y][x] = ((bits >> at) & 1) === 1;
    if (fixed) fixed[y][x] = true;
  };
  for (let at = 0; at < 15; at++) {
    if (at < 6) set(8, at, at);
    else if (at < 8) set(8, at + 1, at);
    else if (at === 8) set(7, 8, at);
    else set(14 - at, 8, at);
    if (at < 8) set(size - 1 - at, 8, at);
    else set(8, size - 15 + at, at);
  }
  modules[size - 8][8] = true;
  if (fixed) fixed[size - 8][8] = true;
}

/** Fills in the codewords in columns of two, from the right, up and down. */
/** @param {number[]} words @param {boolean[][]} modules @param {boolean[][]} fixed */
function place(words, modules, fixed) {
  const size = modules.length;
  let bit = 0;
  for (let right = size - 1; right >= 1; right -= 2) {
    if (right === 6) right = 5;
    const up = ((right + 1) & 2) === 0;
    for (let step = 0; step < size; step++) {
      const y = up ? size - 1 - step : step;
      for (const x of [right, right - 1]) {
        if (fixed[y][x]) continue;
        modules[y][x] = bit < words.length * 8 && ((words[bit >> 3] >> (7 - (bit & 7))) & 1) === 1;
        bit++;
      }
    }
  }
}

/** Counts what makes a code hard to read: long lines, blocks, false finders, too much of one colour. */
/** @param {boolean[][]} modules */
function penalty(modules) {
  const size = modules.length;
  const columns = modules.map((_, x) => modules.map((row) => row[x]));
  let found = 0, dark = 0;
  for (const line of [...modules, ...columns]) {
    const text = line.map((one) => one ? "1" : "0").join("");
    for (const [same] of text.matchAll(/0{5,}|1{5,}/g)) found += same.length - 2;
    for (let at = 0; at + 11 <= size; at++) {
      const part = text.slice(at, at + 11);
      if (part === "10111010000" || part === "00001011101") found += 40;
    }
  }
  for (let y = 0; y < size; y++) {
    for (let x = 0; x < size; x++) {
      if (modules[y][x]) dark++;
      const one = modules[y][x];
      if (y && x && modules[y - 1][x] === one && modules[y][x - 1] === one && modules[y - 1][x - 1] === one) found += 3;
    }
  }
  return found + Math.floor(Math.abs(dark * 20 - size * size * 10) / (size * size)) * 10;
}
