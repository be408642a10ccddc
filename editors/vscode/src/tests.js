// The Testing view: files that end in .test.yaml, their cases, and runs of `quire test --json`.
"use strict";

const { spawn } = require("node:child_process");
const path = require("node:path");
const readline = require("node:readline");
const vscode = require("vscode");
const { casesOf } = require("./cases");
const { findQuire, whyMissing } = require("./program");

const PATTERN = "**/*.test.yaml";
const OTHERS = /[\\/](?:node_modules|\.venv|venv|\.git)[\\/]/;

class TestTree {
  /** @param {(tests: {uri: string, cases?: string[]}[]) => void} tellServer says which tests were run */
  constructor(tellServer) {
    this.tellServer = tellServer;
    this.controller = vscode.tests.createTestController("quire", "Quire");
    this.controller.resolveHandler = (item) => (item === undefined ? this.findFiles() : this.findCases(item));
    this.controller.refreshHandler = () => this.findFiles();
    const run = (wanted, token) => this.run(wanted, token);
    this.controller.createRunProfile("Run", vscode.TestRunProfileKind.Run, run, true);
    const watcher = vscode.workspace.createFileSystemWatcher(PATTERN);
    watcher.onDidCreate((uri) => this.findCasesOf(uri));
    watcher.onDidChange((uri) => this.findCasesOf(uri));
    watcher.onDidDelete((uri) => this.controller.items.delete(uri.toString()));
    const opened = vscode.workspace.onDidOpenTextDocument((document) => this.findCasesOf(document.uri));
    this.parts = [watcher, opened, this.controller];
    vscode.workspace.textDocuments.forEach((document) => this.findCasesOf(document.uri));
  }

  dispose() {
    this.parts.forEach((part) => part.dispose());
  }

  async findFiles() {
    const files = await vscode.workspace.findFiles(PATTERN, "**/{node_modules,.venv,venv,.git}/**", 5000);
    const there = new Set(files.map(String));
    for (const [id] of [...this.controller.items]) {
      if (!there.has(id)) {
        this.controller.items.delete(id);
      }
    }
    await Promise.all(files.map((uri) => this.findCasesOf(uri)));
  }

  async findCasesOf(uri) {
    if (uri.scheme === "file" && uri.path.endsWith(".test.yaml") && !OTHERS.test(uri.fsPath)) {
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

  async findCases(item) {
    try {
      const text = new TextDecoder().decode(await vscode.workspace.fs.readFile(item.uri));
      item.children.replace(casesOf(text).map(({ name, line }) => this.case(item, name, line)));
    } catch {
      this.controller.items.delete(item.id); // it was removed in the meantime
    }
  }

  case(file, name, line) {
    const item = this.controller.createTestItem(`${file.id}::${name}`, name, file.uri);
    item.range = new vscode.Range(line, 0, line, 0);
    item.sortText = String(line).padStart(8, "0");
    return item;
  }

  /** Run the wanted cases, in one process for each folder of the workspace. */
  async run(wanted, token) {
    if (wanted.include === undefined) {
      await this.findFiles();
    }
    const run = this.controller.createTestRun(wanted);
    const excluded = new Set(wanted.exclude ?? []);
    const folders = new Map();
    const ran = [];
    for (const item of wanted.include ?? [...this.controller.items].map(([, file]) => file)) {
      const file = item.parent ?? item;
      const whole = item === file && ![...file.children].some(([, child]) => excluded.has(child));
      const cases = item === file ? [...file.children].map(([, child]) => child) : [item];
      if (excluded.has(file)) {
        continue;
      }
      const folder = vscode.workspace.getWorkspaceFolder(file.uri)?.uri.fsPath ?? path.dirname(file.uri.fsPath);
      const part = folders.get(folder) ?? { names: [], cases: new Set() };
      const chosen = cases.filter((child) => !excluded.has(child));
      chosen.forEach((child) => part.cases.add(child));
      part.names.push(...(whole ? [file.uri.fsPath] : chosen.map((child) => `${file.uri.fsPath}::${child.label}`)));
      folders.set(folder, part);
      ran.push({ uri: file.uri.toString(), ...(whole ? {} : { cases: chosen.map((child) => child.label) }) });
    }
    try {
      for (const [folder, { names, cases }] of folders) {
        await this.runFolder(run, folder, names, cases, token);
      }
    } finally {
      run.end();
    }
    if (!token.isCancellationRequested) {
      this.tellServer(ran); // lenses and hints show the same results
    }
  }

  async runFolder(run, folder, names, cases, token) {
    cases.forEach((item) => run.started(item));
    const { events, problems } = await results(folder, names, token);
    const rows = new Map();
    for (const event of events) {
      const file = this.controller.items.get(vscode.Uri.file(path.resolve(folder, event.file)).toString());
      if (file === undefined) {
        continue;
      }
      if (event.type === "case") {
        const item = this.caseOf(file, event);
        rows.set(item, [...(rows.get(item) ?? []), event]);
      } else if (event.problems.length > 0) {
        run.errored(file, event.problems.map((problem) => message(problem, file.uri)));
        file.children.forEach((child) => cases.delete(child) && run.skipped(child));
      }
    }
    rows.forEach((found, item) => {
      cases.delete(item);
      finish(run, item, found);
    });
    for (const item of cases) {
      if (token.isCancellationRequested) {
        run.skipped(item);
      } else {
        run.errored(item, new vscode.TestMessage(problems || "the case did not run"));
      }
    }
  }

  /** Return the item of a result: a case begins at its line. One that was not seen in the text is added. */
  caseOf(file, event) {
    const line = Math.max(0, event.line - 1);
    const items = [...file.children].map(([, child]) => child);
    const known = items.find((child) => child.range?.start.line === line);
    const added = known ?? this.case(file, event.case.replace(/\[row \d+\]$/, ""), line);
    file.children.add(added);
    return added;
  }
}

/** Run `quire test` and return its events, and what it said besides. */
async function results(folder, names, token) {
  const program = findQuire();
  if (program === undefined) {
    return { events: [], problems: `Quire: ${whyMissing()}` };
  }
  const running = spawn(program, ["test", "--json", "--", ...names], { cwd: folder });
  const cancelled = token.onCancellationRequested(() => running.kill());
  const ended = new Promise((resolve) => running.on("close", resolve).on("error", resolve));
  let problems = "";
  running.stderr.on("data", (data) => (problems += data));
  const events = [];
  for await (const line of readline.createInterface({ input: running.stdout })) {
    try {
      const event = JSON.parse(line);
      events.push(...(event.type === "case" || event.type === "file" ? [event] : []));
    } catch {
      problems += `${line}\n`;
    }
  }
  const end = await ended;
  cancelled.dispose();
  return { events, problems: end instanceof Error ? end.message : problems.trim() };
}

/** Say how a case ended: with one row that failed, it failed. */
function finish(run, item, rows) {
  const took = rows.reduce((sum, row) => sum + row.seconds * 1000, 0);
  const failed = rows.filter((row) => row.outcome === "failed");
  if (failed.length > 0) {
    run.failed(item, failed.flatMap((row) => row.problems.map((problem) => message(problem, item.uri))), took);
  } else if (rows.some((row) => row.outcome === "passed")) {
    run.passed(item, took);
  } else {
    run.skipped(item);
  }
  for (const row of rows) {
    const why = [row.reason, ...row.problems.map((problem) => problem.message)].filter(Boolean).join("; ");
    // deno-lint-ignore no-control-regex
    const line = `${row.outcome}  ${row.case}${why && `: ${why}`}`.replace(/[\x00-\x1f\x7f-\x9f]+/g, " ");
    run.appendOutput(`${line}\r\n`, undefined, item);
  }
}

/** Return a problem as a message at its line, with a comparison where there are two texts. */
function message(problem, uri) {
  const text = [problem.message, problem.help && `help: ${problem.help}`].filter(Boolean).join("\n");
  const told = typeof problem.expected === "string" && typeof problem.actual === "string"
    ? vscode.TestMessage.diff(text, problem.expected, problem.actual)
    : new vscode.TestMessage(text);
  const start = new vscode.Position(Math.max(0, problem.line - 1), Math.max(0, problem.column - 1));
  told.location = new vscode.Location(uri, start);
  return told;
}

module.exports = { TestTree };
