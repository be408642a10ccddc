// The commands: free ones ask the server or the program; a run is typed into a terminal, where the user sees it.
"use strict";

const { execFile } = require("node:child_process");
const path = require("node:path");
const vscode = require("vscode");
const { findQuire } = require("./program");

const MOST_BYTES = 20_000_000;

/** @param {vscode.ExtensionContext} context */
function registerCommands(context) {
  const add = (name, action) => context.subscriptions.push(vscode.commands.registerCommand(name, guarded(action)));
  add("quire.run", (uri) => inTerminal("run", uri));
  add("quire.sign", (uri) => inTerminal("sign", uri));
  add("quire.can", (uri) => inTerminal("can", uri));
  add("quire.testDocument", (uri) => inTerminal("test", uri));
  add("quire.updateSnapshots", (uri, name) => typed(["test", "--update", name ? `${file(uri)}::${name}` : file(uri)]));
  add("quire.prompt", async (uri, step) => {
    const document = file(uri);
    const named = step ??
      (await vscode.window.showInputBox({ prompt: "The step, such as 2 or 2.do; empty for a directive" }));
    if (named !== undefined) {
      await shown(await free(["show", document, "--prompt", ...(named === "" ? [] : [named])], document), "markdown");
    }
  });
  add("quire.graph", async (uri) => {
    const document = file(uri);
    picture(path.basename(document), await free(["show", document, "--graph", "svg"], document));
  });
  add("quire.proof", async (uri) => {
    const document = file(uri);
    await shown(await free(["show", document], document), "plaintext");
  });
  add("quire.answer", async () => {
    const waiting = JSON.parse(await free(["inbox", "--json"], folder()));
    const questions = (Array.isArray(waiting) ? waiting : (waiting.items ?? [])).map((one) => ({
      label: String(one.question ?? one.text ?? one.run),
      description: `${one.document ?? ""} ${one.run ?? ""}`,
      run: String(one.run),
      step: one.step === undefined ? "" : String(one.step),
    }));
    const chosen = await vscode.window.showQuickPick(questions, { placeHolder: "A question that waits" });
    const answer = chosen && (await vscode.window.showInputBox({ prompt: chosen.label }));
    if (chosen && answer !== undefined) {
      typed(["answer", chosen.run, ...(chosen.step ? [chosen.step] : []), answer]);
    }
  });
}

/**
 * Show the result of a command that the server has carried out.
 * @param {import("vscode-languageclient/node").LanguageClient | undefined} client
 */
async function present(client, command, result) {
  if (command === "quire.fixAll") {
    const edit = result && (await client?.protocol2CodeConverter.asWorkspaceEdit(result));
    return edit ? vscode.workspace.applyEdit(edit) : undefined;
  }
  if (command === "quire.test") {
    const events = Array.isArray(result) ? result : [];
    const cases = events.filter((one) => one.type === "case");
    const failed = cases.filter((one) => one.outcome !== "passed").map((one) => one.case);
    const summary = `${cases.length - failed.length} of ${cases.length} cases passed`;
    if (failed.length > 0) {
      vscode.window.showWarningMessage(`Quire: ${summary}; failed: ${failed.slice(0, 3).join(", ")}`);
    } else {
      vscode.window.showInformationMessage(`Quire: ${summary}`);
    }
  } else if (typeof result === "string" && result !== "") {
    await shown(result, command === "quire.showProof" ? "plaintext" : "markdown");
  }
  return result;
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

/** Return the path of a document: of a URI, or of the active editor. */
function file(uri) {
  if (typeof uri === "string") {
    return vscode.Uri.parse(uri).fsPath;
  }
  const found = uri instanceof vscode.Uri ? uri : vscode.window.activeTextEditor?.document.uri;
  if (found === undefined) {
    throw new Error("open a document first");
  }
  return found.fsPath;
}

function folder() {
  const found = vscode.workspace.workspaceFolders?.[0];
  if (found === undefined) {
    throw new Error("open a folder first");
  }
  return found.uri.fsPath;
}

function program() {
  const found = findQuire();
  if (found === undefined) {
    throw new Error("no quire program found: install it into the folder's .venv or on the PATH, or set quire.path");
  }
  return found;
}

/** Run a command that costs nothing, and return its output. */
function free(args, place) {
  const cwd = vscode.workspace.getWorkspaceFolder(vscode.Uri.file(place))?.uri.fsPath ?? path.dirname(place);
  return new Promise((resolve, reject) => {
    execFile(program(), args, { cwd, maxBuffer: MOST_BYTES }, (error, output, problems) => {
      if (error && output === "") {
        reject(new Error(problems.trim() || error.message));
      } else {
        resolve(output);
      }
    });
  });
}

/** Put a command into a terminal. What may cost money is not sent: the user reads it and presses Enter. */
async function inTerminal(verb, uri) {
  const document = file(uri);
  await vscode.workspace.openTextDocument(document).then((open) => open.isDirty && open.save());
  typed([verb, document], verb === "test");
}

function typed(args, send = false) {
  const terminal = vscode.window.terminals.find((one) => one.name === "Quire") ?? vscode.window.createTerminal("Quire");
  terminal.show();
  terminal.sendText([program(), ...args].map(quoted).join(" "), send);
}

/** Quote a word for a shell: names of files come from the folder, and may hold anything. */
function quoted(word) {
  if (/^[\w@%+=:,./-]+$/.test(word)) {
    return word;
  }
  return process.platform === "win32" ? `"${word.replaceAll('"', '""')}"` : `'${word.replaceAll("'", "'\\''")}'`;
}

async function shown(content, language) {
  const document = await vscode.workspace.openTextDocument({ content, language });
  await vscode.window.showTextDocument(document, { preview: true, viewColumn: vscode.ViewColumn.Beside });
}

/** Show a picture in a frame without scripts. */
function picture(title, svg) {
  const panel = vscode.window.createWebviewPanel("quire.graph", title, vscode.ViewColumn.Beside, {
    enableScripts: false,
  });
  const policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'";
  const data = Buffer.from(svg).toString("base64");
  panel.webview.html = `<!doctype html><meta http-equiv="Content-Security-Policy" content="${policy}">
    <body style="background:#fff"><img alt="the graph of the document" src="data:image/svg+xml;base64,${data}"></body>`;
}

module.exports = { present, registerCommands, quoted };
