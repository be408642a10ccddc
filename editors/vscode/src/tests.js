// The Testing view: files that end in .test.yaml, their cases, and runs of `quire test --json`.
"use strict";

const { spawn } = require("node:child_process");
const path = require("node:path");
const readline = require("node:readline");
const vscode = require("vscode");
const { findQuire } = require("./program");

const PATTERN = "**/*.test.yaml";

class TestTree {
  constructor() {
    this.controller = vscode.tests.createTestController("quire", "Quire");
    this.controller.resolveHandler = (item) => (item === undefined ? this.findFiles() : this.findCases(item));
    this.controller.refreshHandler = () => this.findFiles();
    this.controller.createRunProfile(
      "Run",
      vscode.TestRunProfileKind.Run,
      (wanted, token) => this.run(wanted, token),
      true,
    );
    this.watcher = vscode.workspace.createFileSystemWatcher(PATTERN);
    this.watcher.onDidCreate((uri) => this.file(uri));
    this.watcher.onDidChange((uri) => this.findCases(this.file(uri)));
    this.watcher.onDidDelete((uri) => this.controller.items.delete(uri.toString()));
  }

  dispose() {
    this.watcher.dispose();
    this.controller.dispose();
  }

  async findFiles() {
    for (const uri of await vscode.workspace.findFiles(PATTERN, "**/{node_modules,.venv}/**", 5000)) {
      await this.findCases(this.file(uri));
    }
  }

  file(uri) {
    const known = this.controller.items.get(uri.toString());
    if (known !== undefined) {
      return known;
    }
    const item = this.controller.createTestItem(uri.toString(), vscode.workspace.asRelativePath(uri), uri);
    item.canResolveChildren = true;
    this.controller.items.add(item);
    return item;
  }

  /** Read the names of the cases: the entries of `cases:` begin with `- name:`. */
  async findCases(item) {
    if (item.uri === undefined) {
      return;
    }
    const text = new TextDecoder().decode(await vscode.workspace.fs.readFile(item.uri));
    item.children.replace(
      casesOf(text).map(({ name, line }) => {
        const child = this.controller.createTestItem(`${item.id}::${name}`, name, item.uri);
        child.range = new vscode.Range(line, 0, line, 0);
        return child;
      }),
    );
  }

  async run(wanted, token) {
    const run = this.controller.createTestRun(wanted);
    const files = new Map();
    const roots = wanted.include ?? [...this.controller.items].map(([, item]) => item);
    for (const item of roots) {
      const file = item.parent ?? item;
      const cases = files.get(file) ?? [];
      files.set(file, item.parent === undefined ? [] : [...cases, item]);
    }
    for (const [file, cases] of files) {
      if (token.isCancellationRequested) {
        break;
      }
      await this.runFile(run, file, cases, token);
    }
    run.end();
  }

  async runFile(run, file, cases, token) {
    const program = findQuire();
    const place = file.uri.fsPath;
    const items = new Map([...file.children].map(([, child]) => [child.label, child]));
    const chosen = cases.length > 0 ? cases : [...items.values()];
    chosen.forEach((item) => run.started(item));
    if (program === undefined) {
      chosen.forEach((item) => run.errored(item, new vscode.TestMessage("no quire program found")));
      return;
    }
    const named = cases.length > 0 ? cases.map((item) => `${place}::${item.label}`) : [place];
    const cwd = vscode.workspace.getWorkspaceFolder(file.uri)?.uri.fsPath ?? path.dirname(place);
    const process = spawn(program, ["test", "--json", ...named], { cwd });
    token.onCancellationRequested(() => process.kill());
    const failed = new Map();
    const passed = new Map();
    let problems = "";
    process.stderr.on("data", (data) => (problems += data));
    for await (const line of readline.createInterface({ input: process.stdout })) {
      const event = parsed(line);
      if (event?.type !== "case") {
        continue;
      }
      const name = items.has(event.case) ? event.case : event.case.replace(/\[[^\]]*\]$/, "");
      const item = items.get(name);
      if (item === undefined) {
        continue;
      }
      passed.set(item, (passed.get(item) ?? 0) + (event.seconds ?? 0) * 1000);
      if (event.outcome !== "passed") {
        failed.set(item, [...(failed.get(item) ?? []), ...messages(event, file.uri)]);
      }
    }
    for (const item of chosen) {
      if (failed.has(item)) {
        run.failed(item, failed.get(item), passed.get(item));
      } else if (passed.has(item)) {
        run.passed(item, passed.get(item));
      } else if (token.isCancellationRequested) {
        run.skipped(item);
      } else {
        run.errored(item, new vscode.TestMessage(problems.trim() || "the case did not run"));
      }
    }
  }
}

/** Return the messages of a case that failed, each at its line. */
function messages(event, uri) {
  const found = (event.problems ?? []).map((problem) => {
    const message = new vscode.TestMessage(
      typeof problem === "string" ? problem : (problem.message ?? JSON.stringify(problem)),
    );
    const line = Math.max(0, (problem.line ?? event.line ?? 1) - 1);
    message.location = new vscode.Location(uri, new vscode.Position(line, Math.max(0, (problem.column ?? 1) - 1)));
    return message;
  });
  return found.length > 0 ? found : [new vscode.TestMessage(event.reason || event.outcome)];
}

function parsed(line) {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

/** Return the cases of a test file with their lines. A text that is half typed gives those that can be seen. */
function casesOf(text) {
  const found = [];
  let list = false;
  let indent;
  text.split(/\r\n|\n|\r/).forEach((line, number) => {
    if (/^\S/.test(line) && !line.startsWith("#") && !line.startsWith("-")) {
      list = /^cases:\s*(#.*)?$/.test(line);
      return;
    }
    const entry = list ? /^(\s*)-\s+name:\s*(.+?)\s*$/.exec(line) : null;
    indent ??= entry?.[1].length;
    if (entry && entry[1].length === indent) {
      found.push({ name: unquoted(entry[2]), line: number });
    }
  });
  return found;
}

function unquoted(text) {
  const quoted = /^(["'])(.*)\1$/.exec(text);
  return quoted ? quoted[2] : text;
}

module.exports = { TestTree, casesOf };
