// Write words as a line of a shell. Names of files come from the folder and may hold anything.
"use strict";

/**
 * @param {string[]} words
 * @param {string} shell the program of the shell
 * @param {string} platform
 */
function commandLine(words, shell, platform) {
  // deno-lint-ignore no-control-regex
  if (words.some((word) => /[\x00-\x1f\x7f-\x9f]/.test(word))) {
    // A line end would send the command, and Ctrl-C would leave it.
    throw new Error("a name or a value with control characters is not put into a terminal");
  }
  if (/(?:pwsh|powershell)(?:\.exe)?$/i.test(shell)) {
    return `& ${words.map((word) => (isPlain(word) ? word : `'${word.replaceAll("'", "''")}'`)).join(" ")}`;
  }
  if (platform === "win32" && /cmd(?:\.exe)?$/i.test(shell)) {
    if (words.some((word) => /["%!^&|<>]/.test(word))) {
      throw new Error('the command prompt cannot be given a name or a value with one of "%!^&|<>');
    }
    return words.map((word) => (isPlain(word) || /^[\w.:\\-]+$/.test(word) ? word : `"${word}"`)).join(" ");
  }
  return words.map((word) => (isPlain(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");
}

function isPlain(word) {
  return /^[\w+=:./-]+$/.test(word);
}

module.exports = { commandLine };
