// Find the `quire` program. A program that lies in the folder itself is only used once the user trusts the folder.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const vscode = require("vscode");

const NAME = process.platform === "win32" ? "quire.exe" : "quire";
const FOLDERS = process.platform === "win32" ? [".venv\\Scripts", "venv\\Scripts"] : [".venv/bin", "venv/bin"];

/**
 * Return the program: that of the settings, of the folder's environment, or of the PATH.
 * @returns {string | undefined}
 */
function findQuire() {
  const set = configured();
  if (set !== "") {
    return isProgram(set) ? set : undefined;
  }
  return [...(vscode.workspace.isTrusted ? ofFolders() : []), ...ofPath()].find(isProgram);
}

/** Say why there is no program, and what to do. */
function whyMissing() {
  if (configured() !== "") {
    return `the setting quire.path names ${configured()}, which is not a program`;
  }
  if (!vscode.workspace.isTrusted && ofFolders().some(isProgram)) {
    return "the quire program of this folder is not started before you trust the folder";
  }
  return "the program quire was not found; install it into the folder's .venv or on the PATH, " +
    "or name it in the setting quire.path";
}

/** Return the path in the settings. VS Code ignores the folder's own value until the folder is trusted. */
function configured() {
  const set = vscode.workspace.getConfiguration("quire").get("path");
  return typeof set === "string" ? set.trim() : "";
}

function ofFolders() {
  return folders().flatMap((folder) => FOLDERS.map((below) => path.join(folder, below, NAME)));
}

function ofPath() {
  // An empty entry, or a relative one, means the current folder, which may be anything.
  const places = (process.env.PATH ?? "").split(path.delimiter).filter((place) => path.isAbsolute(place));
  const found = places.map((place) => path.join(place, NAME));
  // The environment of the folder may have been active when VS Code was started.
  return vscode.workspace.isTrusted
    ? found
    : found.filter((file) => !folders().some((folder) => isInside(file, folder)));
}

function folders() {
  return (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath);
}

/**
 * Tell whether a file is below a folder, by its name or by what a link names.
 * @param {string} file
 * @param {string} folder
 */
function isInside(file, folder) {
  return [[file, folder], [real(file), real(folder)]].some(([inner, outer]) => {
    const way = path.relative(outer, inner);
    return way !== ".." && !way.startsWith(`..${path.sep}`) && !path.isAbsolute(way);
  });
}

/** @param {string} file */
function real(file) {
  try {
    return fs.realpathSync(file);
  } catch {
    return file;
  }
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

module.exports = { findQuire, isInside, whyMissing };
