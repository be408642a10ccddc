// The commands. Free ones ask the server or the program; a command that may cost money is put into a terminal.
"use strict";

const { execFile } = require("node:child_process");
const path = require("node:path");
const vscode = require("vscode");
const { findQuire, whyMissing } = require("./program");
const { oneLine } = require("./inbox");
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
  add("quire.newPlaybook", newPlaybook);
  add("quire.showRun", async (run) => showText(`Run ${run}.txt`, await output(["runs", run], folderOf())));
}

/**
 * Ask the user for the answer to a question and store it: a process of its own continues the run.
 * @param {Record<string, any> | undefined} question the one of a row; without it the user chooses
 */
async function answer(question) {
  const folder = folderOf();
  const entry = question?.path === undefined ? await chooseQuestion(folder) : question;
  if (entry === undefined) {
    return;
  }
  const options = entry.kind === "confirm" ? ["yes", "no"] : (entry.options ?? []);
  const value = options.length > 0
    ? await vscode.window.showQuickPick(options.map(String), { placeHolder: oneLine(entry.prompt) })
    : await vscode.window.showInputBox({ prompt: oneLine(entry.prompt), value: entry.default ?? "" });
  if (value !== undefined) {
    await output(["answer", entry.run, "--detach", "--", entry.path, value], folder);
    vscode.window.setStatusBarMessage(`Quire: answered; ${oneLine(entry.title)} continues`, 5000);
    vscode.commands.executeCommand("quire.refreshInbox");
  }
}

async function chooseQuestion(folder) {
  const questions = JSON.parse(await output(["inbox", "--json"], folder)).filter((entry) => entry.prompt !== undefined);
  if (questions.length === 0) {
    vscode.window.showInformationMessage("Quire: no question is waiting for an answer");
    return undefined;
  }
  const rows = questions.map((entry) => ({
    label: oneLine(entry.prompt),
    description: oneLine(`${entry.title}, step ${entry.way}`),
    detail: `run ${entry.run}`,
    entry,
  }));
  return (await vscode.window.showQuickPick(rows, { placeHolder: "Which question?" }))?.entry;
}

/** Create a playbook from the template, and open it. */
async function newPlaybook() {
  const folder = folderOf();
  const name = await vscode.window.showInputBox({ title: "New Playbook", prompt: "Its name", value: "hello" });
  if (name !== undefined) {
    const created = await output(["new", "playbook", "--", name.trim()], folder);
    const file = created.split("\n")[0].trim();
    await vscode.window.showTextDocument(vscode.Uri.file(path.resolve(folder, file)));
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

module.exports = { folderOf, guarded, output, present, registerCommands };
