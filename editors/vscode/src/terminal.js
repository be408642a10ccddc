// Put commands into a terminal. Only what costs nothing is sent; else the user reads the command and presses Enter.
"use strict";

const path = require("node:path");
const vscode = require("vscode");
const { findQuire, isInside, whyMissing } = require("./program");
const { commandLine } = require("./shell_words");

const LONGEST_START = 3000;

/**
 * The terminals of this extension: a command stands in it ("typed"), is carried out ("running"), or has ended ("free").
 * @type {Map<vscode.Terminal, "typed" | "running" | "free">}
 */
const terminals = new Map();

/** @param {vscode.ExtensionContext} context */
function watchTerminals(context) {
  const mark = (terminal, state) => terminals.has(terminal) && terminals.set(terminal, state);
  context.subscriptions.push(
    vscode.window.onDidStartTerminalShellExecution((event) => mark(event.terminal, "running")),
    vscode.window.onDidEndTerminalShellExecution((event) => mark(event.terminal, "free")),
    vscode.window.onDidCloseTerminal((terminal) => terminals.delete(terminal)),
  );
}

/**
 * Write a command of `quire` into a terminal.
 * @param {string} folder
 * @param {string[]} args files are named relative to the folder
 * @param {boolean} send
 */
async function typeCommand(folder, args, send = false) {
  const program = findQuire();
  if (program === undefined) {
    throw new Error(whyMissing());
  }
  const named = isInside(program, folder) ? path.relative(folder, program) : program;
  const line = commandLine([named, ...args], vscode.env.shell, process.platform);
  const terminal = await freeTerminal(folder);
  terminals.set(terminal, "typed");
  terminal.show(send); // what is not sent waits for a key
  terminal.sendText(line, send);
}

/**
 * Return a terminal at a prompt. One that carries out a command is left alone: it might take the text for an answer.
 * @param {string} folder
 */
async function freeTerminal(folder) {
  for (const [terminal, state] of terminals) {
    const shell = terminal.shellIntegration;
    if (state === "free" && shell?.cwd?.fsPath === folder) {
      return terminal;
    }
    if (state === "typed" && shell !== undefined) {
      // Its command was never sent, and would stand before the new one.
      terminals.delete(terminal);
      terminal.dispose();
    }
  }
  const terminal = vscode.window.createTerminal({ name: "Quire", cwd: folder });
  await prompt(terminal);
  return terminal;
}

/** Wait until the shell is at its prompt, or for as long as a shell takes that does not tell. */
function prompt(terminal) {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      listener.dispose();
      resolve(undefined);
    };
    const timer = setTimeout(done, LONGEST_START);
    const listener = vscode.window.onDidChangeTerminalShellIntegration((event) =>
      event.terminal === terminal && done()
    );
  });
}

module.exports = { typeCommand, watchTerminals };
