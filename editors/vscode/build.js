// Bundle the extension with its client library into one file, with the licences of what is in it, schemas and pictures.
"use strict";

const { execFileSync } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");
const esbuild = require("esbuild");

fs.mkdirSync(path.join(__dirname, "schemas"), { recursive: true });
for (const format of ["pipeline", "test", "settings"]) {
  const quire = path.join(__dirname, "../../.venv/bin/quire");
  const schema = execFileSync(quire, ["grammar", format, "--schema"]);
  fs.writeFileSync(path.join(__dirname, `schemas/quire-${format}.schema.json`), schema);
}
fs.copyFileSync(path.join(__dirname, "../../LICENSE"), path.join(__dirname, "LICENSE"));
fs.mkdirSync(path.join(__dirname, "media"), { recursive: true });
for (const picture of ["problems", "completion", "hover", "testing"]) {
  fs.copyFileSync(
    path.join(__dirname, `../../docs/pictures/editor-${picture}.png`),
    path.join(__dirname, `media/${picture}.png`),
  );
}

const built = esbuild.buildSync({
  absWorkingDir: __dirname,
  entryPoints: ["src/extension.js"],
  outfile: "dist/extension.js",
  bundle: true,
  platform: "node",
  format: "cjs",
  target: "node20",
  external: ["vscode"],
  minify: true,
  legalComments: "none",
  metafile: true,
});

const inside = Object.keys(built.metafile.inputs)
  .map((file) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0])
  .filter((folder) => folder !== undefined);
const licences = [...new Set(inside)].sort().map((folder) => {
  const about = JSON.parse(fs.readFileSync(path.join(__dirname, folder, "package.json"), "utf8"));
  const file = fs.readdirSync(path.join(__dirname, folder)).find((name) => /^licen[cs]e/i.test(name));
  if (file === undefined) {
    throw new Error(`${folder} comes without a licence`);
  }
  return `${about.name} ${about.version}\n\n${fs.readFileSync(path.join(__dirname, folder, file), "utf8").trim()}\n`;
});
fs.writeFileSync(path.join(__dirname, "dist/LICENSES.txt"), licences.join(`\n${"-".repeat(80)}\n\n`));
