// The commands. Free ones ask the server or the program; a command that may cost money is put into a terminal.
"use strict";

const { execFile } = require("node:child_process");
const path = require("node:path");
const vscode = require("vscode");
const { findQuire, whyMissing } = require("./program");
const { showPicture, showText } = require("./results");
const { typeCommand } = require("./terminal");

const MOST_BYTES = 20_000_000;

/** @param {vscode.ExtensionContext} context */
function registerCommands(context) {
  const add = (name, action) => context.subscriptions.push(vscode.commands.registerCommand(name, guarded(action)));
  add("quire.run", (uri) => inTerminal(uri, ["run"]));
  add("quire.sign", (uri) => inTerminal(uri, ["sign"]));
  add("quire.can", (uri) => inTerminal(uri, ["can"]));
  add("quire.testDocument", (uri) => inTerminal(uri, ["test"], { send: true }));
  add("quire.updateSnapshots", (uri, name) => inTerminal(uri, ["test", "--update"], { inside: name }));
  add("quire.prompt", async (uri) => {
    const document = documentOf(uri);
    const step = await vscode.window.showInputBox({
      title: "Show the Prompt of a Step",
      prompt: "The step, such as 2, 2a or 4.do.1. Of a directive: leave it empty.",
      value: stepAtCursor(),
    });
    return step === undefined ? undefined : askServer("quire.showPrompt", document.toString(), step.trim());
  });
  add("quire.proof", (uri) => askServer("quire.showProof", documentOf(uri).toString()));
  add("quire.graph", async (uri) => {
    const { file, folder } = await saved(uri);
    showPicture(`Graph of ${nameOf(file)}`, await output(["show", file, "--graph", "svg"], folder));
  });
  add("quire.answer", answer);
}

/** Let the user choose a question that waits, and put the answer into a terminal: the run goes on with it. */
async function answer() {
  const folder = folderOf();
  const open = JSON.parse(await output(["inbox", "--json"], folder)).filter((entry) => entry.prompt !== undefined);
  if (open.length === 0) {
    vscode.window.showInformationMessage("Quire: nothing waits for an answer");
    return;
  }
  const questions = open.map((entry) => ({
    label: oneLine(entry.prompt),
    description: oneLine(`${entry.title}, step ${entry.way}`),
    detail: `run ${entry.run}`,
    entry,
  }));
  const entry = (await vscode.window.showQuickPick(questions, { placeHolder: "Which question?" }))?.entry;
  const options = entry?.kind === "confirm" ? ["yes", "no"] : (entry?.options ?? []);
  const value = entry === undefined
    ? undefined
    : options.length > 0
    ? await vscode.window.showQuickPick(options.map(String), { placeHolder: oneLine(entry.prompt) })
    : await vscode.window.showInputBox({ prompt: oneLine(entry.prompt), value: entry.default ?? "" });
  if (value !== undefined) {
    await typeCommand(folder, ["answer", entry.run, "--", entry.path, value]);
  }
}

/**
 * Show the result of a command that the server has carried out.
 * @param {import("vscode-languageclient/node").LanguageClient | undefined} client
 * @param {string} command
 * @param {unknown[]} given
 */
async function present(client, command, given, result) {
  if (command === "quire.fixAll") {
    const edit = result && (await client?.protocol2CodeConverter.asWorkspaceEdit(result));
    return edit ? vscode.workspace.applyEdit(edit) : undefined;
  }
  if (command === "quire.test") {
    summarise(Array.isArray(result) ? result : []);
  } else if (typeof result === "string" && result !== "") {
    const name = nameOf(vscode.Uri.parse(String(given[0])).fsPath);
    const title = {
      "quire.showPrompt": `Prompt ${given[1] ? `of step ${given[1]} ` : ""}in ${name}.md`,
      "quire.showProof": `Bounds of ${name}.txt`,
    };
    await showText(title[command] ?? `${command} of ${name}.txt`, result);
  }
  return result;
}

/** Say how the cases ended, as `quire test --json` tells it. */
function summarise(events) {
  const cases = events.filter((event) => event.type === "case");
  const failed = cases.filter((event) => event.outcome === "failed").map((event) => event.case);
  const broken = events.filter((event) => event.type === "file").flatMap((event) => event.problems);
  const passed = cases.filter((event) => event.outcome === "passed").length;
  const summary = `Quire: ${passed} of ${cases.length} cases passed`;
  if (broken.length > 0) {
    vscode.window.showErrorMessage(`Quire: ${broken[0].message}`);
  } else if (failed.length > 0) {
    vscode.window.showWarningMessage(`${summary}; failed: ${failed.slice(0, 3).join(", ")}`);
  } else {
    vscode.window.showInformationMessage(summary);
  }
}

/** Show the error of a command instead of losing it. */
function guarded(action) {
  return async (...given) => {
    try {
      return await action(...given);
    } catch (error) {
      vscode.window.showErrorMessage(`Quire: ${error instanceof Error ? error.message : error}`);
      return undefined;
    }
  };
}

/** Ask the server, which knows texts that are not saved; `present` shows the result. */
async function askServer(command, ...given) {
  if (!(await vscode.commands.getCommands(true)).includes(command)) {
    throw new Error(findQuire() === undefined ? whyMissing() : "the language server does not run");
  }
  return vscode.commands.executeCommand(command, ...given);
}

/** Return the document that is meant: by a lens (a text), by a menu, or the active one. */
function documentOf(uri) {
  const found = typeof uri === "string" ? vscode.Uri.parse(uri) : (uri ?? vscode.window.activeTextEditor?.document.uri);
  if (found?.scheme !== "file") {
    throw new Error("open a document first");
  }
  return found;
}

/** Save a document, and return its file, relative to the folder that it is in, and that folder. */
async function saved(uri) {
  const found = documentOf(uri);
  const document = await vscode.workspace.openTextDocument(found);
  if (document.isDirty) {
    await document.save();
  }
  const folder = vscode.workspace.getWorkspaceFolder(found)?.uri.fsPath ?? path.dirname(found.fsPath);
  return { file: `.${path.sep}${path.relative(folder, found.fsPath)}`.replace(/^\.[\\/](?!-)/, ""), folder };
}

function folderOf() {
  const active = vscode.window.activeTextEditor?.document.uri;
  const found = (active && vscode.workspace.getWorkspaceFolder(active)) ?? vscode.workspace.workspaceFolders?.[0];
  if (found === undefined) {
    throw new Error("open a folder first");
  }
  return found.uri.fsPath;
}

/** Return the label of the step that the cursor is in, as far as headings tell. */
function stepAtCursor() {
  const editor = vscode.window.activeTextEditor;
  for (let line = editor?.selection.active.line ?? -1; line >= 0; line--) {
    const heading = /^#{2,3} STEP (\d+[a-z]?):/.exec(editor.document.lineAt(line).text);
    if (heading !== null) {
      return heading[1];
    }
  }
  return "";
}

/** Return the name of a file without its last ending. */
function nameOf(file) {
  return path.basename(file).replace(/\.(?:md|markdown|ya?ml)$/, "");
}

function oneLine(text) {
  return String(text).replace(/\s+/g, " ").trim();
}

/** Run a command that costs nothing, and return its output. */
function output(args, folder) {
  const program = findQuire();
  if (program === undefined) {
    throw new Error(whyMissing());
  }
  return new Promise((resolve, reject) => {
    execFile(program, args, { cwd: folder, maxBuffer: MOST_BYTES }, (error, text, problems) => {
      if (error) {
        reject(new Error(problems.trim() || error.message));
      } else {
        resolve(text);
      }
    });
  });
}

async function inTerminal(uri, words, { send = false, inside = undefined } = {}) {
  const { file, folder } = await saved(uri);
  await typeCommand(folder, [...words, inside === undefined ? file : `${file}::${inside}`], send);
}

module.exports = { guarded, present, registerCommands };
