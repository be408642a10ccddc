// The extension: starts the language server of the project's own Quire, and gives its commands and tests a place.
"use strict";

const vscode = require("vscode");
const { LanguageClient, TransportKind } = require("vscode-languageclient/node");
const { findQuire } = require("./program");
const { present, registerCommands } = require("./commands");
const { TestTree } = require("./tests");

const SELECTOR = [
  { scheme: "file", language: "markdown" },
  { scheme: "file", language: "yaml" },
  { scheme: "file", pattern: "**/quire.toml" },
];

/** @type {LanguageClient | undefined} */
let client;

/** @param {vscode.ExtensionContext} context */
async function activate(context) {
  const log = vscode.window.createOutputChannel("Quire", { log: true });
  const tests = new TestTree();
  context.subscriptions.push(log, tests);
  registerCommands(context);
  context.subscriptions.push(
    vscode.commands.registerCommand("quire.restart", () => start(log)),
    vscode.workspace.onDidGrantWorkspaceTrust(() => start(log)),
    vscode.workspace.onDidChangeConfiguration((change) => change.affectsConfiguration("quire.path") && start(log)),
    vscode.window.onDidChangeActiveTextEditor(markDocument),
  );
  markDocument(vscode.window.activeTextEditor);
  await start(log);
}

/**
 * Start the server, or start it again.
 * @param {vscode.LogOutputChannel} log
 */
async function start(log) {
  await stop();
  const command = findQuire();
  if (command === undefined) {
    log.warn("no quire program found: install it into the folder's .venv or on the PATH, or set quire.path");
    return;
  }
  log.info(`starting ${command} lsp`);
  const program = { command, args: ["lsp"], transport: TransportKind.stdio };
  client = new LanguageClient(
    "quire",
    "Quire",
    { run: program, debug: program },
    {
      documentSelector: SELECTOR,
      outputChannel: log,
      middleware: {
        executeCommand: async (command, given, next) => present(client, command, await next(command, given)),
      },
    },
  );
  try {
    await client.start();
  } catch (error) {
    log.error(`the language server did not start: ${error}`);
  }
}

async function stop() {
  const running = client;
  client = undefined;
  if (running !== undefined && running.isRunning()) {
    await running.stop();
  }
}

/**
 * Tell menus whether the active editor shows a document of Quire.
 * @param {vscode.TextEditor | undefined} editor
 */
function markDocument(editor) {
  const document = editor?.document;
  const name = document?.fileName ?? "";
  const text = document !== undefined && document.lineCount < 20000 ? document.getText() : "";
  const isDocument = /\.playbook\.md$|[\\/]\.ai[\\/]directives[\\/].*\.md$/.test(name) ||
    (/\.(md|markdown)$/.test(name) && /^## STEP/m.test(text)) ||
    (/\.ya?ml$/.test(name) && /^pipeline:/m.test(text));
  vscode.commands.executeCommand("setContext", "quire.isDocument", isDocument);
}

module.exports = { activate, deactivate: stop };
