// The extension: starts the language server of the project's own Quire, and gives its commands and tests a place.
"use strict";

const vscode = require("vscode");
const { CloseAction, ErrorAction, LanguageClient, TransportKind } = require("vscode-languageclient/node");
const { findQuire, whyMissing } = require("./program");
const { folderOf, guarded, output, present, registerCommands } = require("./commands");
const { Inbox } = require("./inbox");
const { registerResults } = require("./results");
const { watchTerminals } = require("./terminal");
const { TestTree } = require("./tests");

const SELECTOR = [
  { scheme: "file", language: "markdown" },
  { scheme: "file", language: "yaml" },
  { scheme: "file", pattern: "**/quire.toml" },
];
const OWN_FILES = "{quire.toml,.ai/directives/**/*.md,**/*.playbook.md,**/*.test.yaml}";
const MOST_RESTARTS = 4;
const RESTART_MINUTES = 3;

/** @type {LanguageClient | undefined} */
let client;
/** @type {vscode.LogOutputChannel} */
let log;
let starting = Promise.resolve();
let isTold = false;

/** @param {vscode.ExtensionContext} context */
async function activate(context) {
  log = vscode.window.createOutputChannel("Quire", { log: true });
  const inbox = new Inbox((args) => output(args, folderOf()), (message) => log.info(message));
  context.subscriptions.push(log, new TestTree(tellTests), inbox);
  registerResults(context);
  watchTerminals(context);
  registerCommands(context);
  context.subscriptions.push(
    vscode.commands.registerCommand("quire.restart", restart),
    vscode.commands.registerCommand("quire.refreshInbox", () => inbox.refresh()),
    vscode.commands.registerCommand("quire.checkFile", checkFile),
    vscode.workspace.onDidGrantWorkspaceTrust(restart),
    vscode.workspace.onDidChangeConfiguration((change) => change.affectsConfiguration("quire.path") && restart()),
    vscode.window.onDidChangeActiveTextEditor(markDocument),
    vscode.window.onDidChangeWindowState((state) => state.focused && markDocument(vscode.window.activeTextEditor)),
    vscode.workspace.onDidSaveTextDocument(() => markDocument(vscode.window.activeTextEditor)),
  );
  vscode.commands.executeCommand("setContext", "quire.isActive", true);
  await start();
  markDocument(vscode.window.activeTextEditor);
}

/** Show the findings of the active file, also in a folder that nothing else marks as one of Quire. */
async function checkFile() {
  await (client === undefined ? start() : starting);
  if (client === undefined) {
    sayMissing();
  }
  return vscode.commands.executeCommand("workbench.actions.view.problems");
}

/** Start the server again, and say again if that is not possible. */
function restart() {
  isTold = false;
  return start();
}

/** Start the server, or start it again; one after the other. */
function start() {
  starting = starting.then(stop).then(startClient).catch((error) => log.error(error));
  return starting;
}

async function startClient() {
  const command = findQuire();
  if (command === undefined) {
    log.warn(whyMissing());
    // A folder `pipelines` may belong to something else.
    if ((await vscode.workspace.findFiles(OWN_FILES, "**/{node_modules,.venv,venv}/**", 1)).length > 0) {
      sayMissing();
    }
    return;
  }
  log.info(`starting ${command} lsp`);
  const program = { command, args: ["lsp"], transport: TransportKind.stdio };
  const started = new LanguageClient("quire", "Quire", { run: program, debug: program }, {
    documentSelector: SELECTOR,
    outputChannel: log,
    errorHandler: new Restarts(),
    middleware: {
      executeCommand: guarded(async (name, given, next) => present(started, name, given, await next(name, given))),
    },
  });
  client = started;
  await started.start();
}

async function stop() {
  const running = client;
  client = undefined;
  try {
    await running?.dispose();
  } catch (error) {
    log.info(`the language server had ended before: ${error}`);
  }
}

/** Say to the server which tests were run, if there is one. */
async function tellTests(tests) {
  try {
    await client?.sendNotification("quire/didRunTests", { tests });
  } catch (error) {
    log.info(`the language server was not told of tests: ${error}`);
  }
}

/** Starts a server again that ended by itself, but not for ever. */
class Restarts {
  constructor() {
    /** @type {number[]} */
    this.ends = [];
  }

  error() {
    return { action: ErrorAction.Continue, handled: true };
  }

  closed() {
    const now = Date.now();
    this.ends = [...this.ends.filter((end) => now - end < RESTART_MINUTES * 60_000), now];
    if (this.ends.length > MOST_RESTARTS) {
      const often = `ended ${this.ends.length} times in ${RESTART_MINUTES} minutes and is not started again`;
      say(vscode.window.showErrorMessage, `the language server ${often}`, { "Show Output": showLog, Restart: restart });
      return { action: CloseAction.DoNotRestart, handled: true };
    }
    say(vscode.window.showWarningMessage, "the language server ended and is started again", { "Show Output": showLog });
    return { action: CloseAction.Restart, handled: true };
  }
}

/** Say once that there is no program, with what can be done about it. */
function sayMissing() {
  if (!isTold) {
    isTold = true;
    const settings = () => vscode.commands.executeCommand("workbench.action.openSettings", "quire.path");
    const trust = () => vscode.commands.executeCommand("workbench.trust.manage");
    const choices = vscode.workspace.isTrusted
      ? { "Try Again": restart, "Open Settings": settings }
      : { "Manage Workspace Trust": trust };
    say(vscode.window.showWarningMessage, whyMissing(), choices);
  }
}

/** Show a message with buttons, and do what the chosen one says. */
async function say(show, text, choices) {
  const chosen = await show(`Quire: ${text}`, ...Object.keys(choices));
  await choices[chosen]?.();
}

function showLog() {
  log.show();
}

/**
 * Tell menus whether the active editor shows a document of Quire, or a test.
 * @param {vscode.TextEditor | undefined} editor
 */
function markDocument(editor) {
  const document = editor?.document;
  const name = document?.uri.scheme === "file" ? document.fileName : "";
  const text = document !== undefined && document.lineCount < 20000 ? document.getText() : "";
  const isDocument = /\.playbook\.md$|[\\/]\.ai[\\/]directives[\\/].*\.md$/.test(name) ||
    (/\.(md|markdown)$/.test(name) && /^## STEP \d/m.test(text)) ||
    (/\.ya?ml$/.test(name) && /^pipeline:/m.test(text));
  const isTest = name.endsWith(".test.yaml");
  vscode.commands.executeCommand("setContext", "quire.isDocument", isDocument);
  vscode.commands.executeCommand("setContext", "quire.isTest", isTest);
  if ((isDocument || isTest) && client === undefined) {
    // The program may have been installed in the meantime.
    if (findQuire() === undefined) {
      sayMissing();
    } else {
      start();
    }
  }
}

module.exports = { activate, deactivate: stop };
