// Find the `quire` program. A program that lies in the folder itself is only used once the user trusts the folder.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const vscode = require("vscode");

const NAMES = process.platform === "win32" ? ["quire.exe", "quire.cmd"] : ["quire"];
const FOLDERS = process.platform === "win32" ? [".venv/Scripts", "venv/Scripts"] : [".venv/bin", "venv/bin"];

/**
 * Return the program: that of the settings, of the folder's environment, or of the PATH.
 * @returns {string | undefined}
 */
function findQuire() {
  const places = vscode.workspace.isTrusted ? [...configured(), ...ofFolders()] : [];
  return [...places, ...ofPath()].find(isProgram);
}

function configured() {
  const set = vscode.workspace.getConfiguration("quire").get("path");
  return typeof set === "string" && set !== "" ? [set] : [];
}

function ofFolders() {
  const folders = vscode.workspace.workspaceFolders ?? [];
  return folders.flatMap((folder) =>
    FOLDERS.flatMap((below) => NAMES.map((name) => path.join(folder.uri.fsPath, below, name)))
  );
}

function ofPath() {
  // An empty entry, or a relative one, means the current folder, which may be anything.
  const folders = (process.env.PATH ?? "").split(path.delimiter).filter((folder) => path.isAbsolute(folder));
  return folders.flatMap((folder) => NAMES.map((name) => path.join(folder, name)));
}

/** @param {string} file */
function isProgram(file) {
  try {
    fs.accessSync(file, fs.constants.X_OK);
    return fs.statSync(file).isFile();
  } catch {
    return false;
  }
}

module.exports = { findQuire };
