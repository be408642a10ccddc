// Find the cases of a test file by its lines, for the Testing view. Results of a run correct it.
"use strict";

const NAME = /^(?:name|"name"|'name')\s*:\s+(.*)$/;
const NAME_IN_BRACES = /(?:^\{|,)\s*(?:name|"name"|'name')\s*:\s+((?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^,}])*)/;

/**
 * Return the cases with their lines, counted from 0. A text that is half typed gives those that can be seen.
 * @param {string} text
 * @returns {{name: string, line: number}[]}
 */
function casesOf(text) {
  const found = [];
  let isList = false;
  let dash;
  let entry;
  text.split(/\r\n|\n|\r/).forEach((line, number) => {
    if (/^\s*(?:#.*)?$/.test(line)) {
      return;
    }
    if (/^[^\s-]/.test(line)) {
      isList = /^(?:cases|"cases"|'cases')\s*:\s*(?:#.*)?$/.test(line);
      dash = entry = undefined;
      return;
    }
    const item = isList ? /^(\s*)(-\s+)(.*)$/.exec(line) : null;
    dash ??= item?.[1].length;
    if (item !== null && item[1].length === dash) {
      entry = { line: number, column: dash + item[2].length };
    }
    if (entry === undefined || line.search(/\S/) !== (entry.line === number ? dash : entry.column)) {
      return;
    }
    const key = line.slice(entry.column);
    const name = NAME.exec(key)?.[1] ?? NAME_IN_BRACES.exec(key)?.[1];
    if (name !== undefined) {
      found.push({ name: scalar(name), line: entry.line });
      entry = undefined;
    }
  });
  return found;
}

/**
 * Return the text that a YAML scalar on one line stands for.
 * @param {string} written
 */
function scalar(written) {
  const double = /^"(?:[^"\\]|\\.)*"/.exec(written);
  if (double !== null) {
    try {
      return JSON.parse(double[0]);
    } catch {
      return double[0].slice(1, -1);
    }
  }
  const single = /^'((?:[^']|'')*)'/.exec(written);
  return single !== null ? single[1].replaceAll("''", "'") : written.replace(/\s+#.*$/, "").trim();
}

module.exports = { casesOf };
