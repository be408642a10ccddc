// Bundle the extension with its client library into one file, and put the schema of tests beside it.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const esbuild = require("esbuild");

fs.mkdirSync(path.join(__dirname, "schemas"), { recursive: true });
fs.copyFileSync(
  path.join(__dirname, "../../src/quire/formats/test/schema.json"),
  path.join(__dirname, "schemas/quire-test.schema.json"),
);
fs.copyFileSync(path.join(__dirname, "../../LICENSE"), path.join(__dirname, "LICENSE"));

esbuild.buildSync({
  entryPoints: [path.join(__dirname, "src/extension.js")],
  outfile: path.join(__dirname, "dist/extension.js"),
  bundle: true,
  platform: "node",
  format: "cjs",
  target: "node20",
  external: ["vscode"],
  minify: true,
  legalComments: "linked",
});
