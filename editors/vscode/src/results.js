// Show results beside the document: texts that need not be saved, and pictures in a frame without scripts.
"use strict";

const vscode = require("vscode");

const SCHEME = "quire-result";

/** @type {Map<string, string>} */
const texts = new Map();
/** @type {vscode.EventEmitter<vscode.Uri>} */
const changed = new vscode.EventEmitter();

/** @param {vscode.ExtensionContext} context */
function registerResults(context) {
  context.subscriptions.push(
    changed,
    vscode.workspace.registerTextDocumentContentProvider(SCHEME, {
      onDidChange: changed.event,
      provideTextDocumentContent: (uri) => texts.get(uri.toString()) ?? "",
    }),
    vscode.workspace.onDidCloseTextDocument((document) => texts.delete(document.uri.toString())),
  );
}

/**
 * Show a text beside the editor. The end of the title decides how it is coloured.
 * @param {string} title
 * @param {string} text
 */
async function showText(title, text) {
  const uri = vscode.Uri.from({ scheme: SCHEME, path: `/${title.replaceAll("/", " ")}` });
  texts.set(uri.toString(), text);
  changed.fire(uri);
  const document = await vscode.workspace.openTextDocument(uri);
  await vscode.window.showTextDocument(document, { preview: true, viewColumn: vscode.ViewColumn.Beside });
}

/**
 * @param {string} title
 * @param {string} svg
 */
function showPicture(title, svg) {
  const options = { enableScripts: false, localResourceRoots: [] };
  const panel = vscode.window.createWebviewPanel("quire.graph", title, vscode.ViewColumn.Beside, options);
  const policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'";
  const data = Buffer.from(svg).toString("base64");
  panel.webview.html = `<!doctype html><meta http-equiv="Content-Security-Policy" content="${policy}">
    <body style="background:#fff"><img alt="The graph of the document" src="data:image/svg+xml;base64,${data}"></body>`;
}

module.exports = { registerResults, showPicture, showText };
