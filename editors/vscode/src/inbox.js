// The view of what waits for the user, and of the newest runs. It asks `quire inbox` and `quire runs`, which cost nothing.
"use strict";

const vscode = require("vscode");
const { findQuire } = require("./program");

const SECONDS = 5;
const MOST_RUNS = "15";
const ICONS = {
  completed: "pass",
  failed: "error",
  awaiting_input: "question",
  running: "sync",
  cancelled: "circle-slash",
  paused: "debug-pause",
  interrupted: "debug-pause",
};

/** The tree of two groups: questions, each of which is answered by a click, and runs, each with its outline. */
class Inbox {
  /**
   * @param {(args: string[]) => Promise<string>} ask runs a free command of `quire` in the open folder
   * @param {(message: string) => void} note takes the reason why nothing is shown
   */
  constructor(ask, note) {
    this.ask = ask;
    this.note = note;
    this.questions = [];
    this.runs = [];
    this.shown = "";
    this.changed = new vscode.EventEmitter();
    this.onDidChangeTreeData = this.changed.event;
    this.view = vscode.window.createTreeView("quire.inbox", { treeDataProvider: this });
    this.status = vscode.window.createStatusBarItem("quire.waiting", vscode.StatusBarAlignment.Left);
    this.status.name = "Quire: questions";
    this.status.command = "quire.inbox.focus";
    const timer = setInterval(() => this.view.visible && this.refresh(), SECONDS * 1000);
    this.parts = [
      this.view,
      this.status,
      this.changed,
      this.view.onDidChangeVisibility((event) => event.visible && this.refresh()),
      vscode.window.onDidChangeWindowState((state) => state.focused && this.refresh()),
      vscode.window.onDidEndTerminalShellExecution(() => this.refresh()),
      { dispose: () => clearInterval(timer) },
    ];
    this.refresh();
  }

  dispose() {
    this.parts.forEach((part) => part.dispose());
  }

  /** Read questions and runs again; one time after the other. */
  async refresh() {
    if (this.reading || findQuire() === undefined) {
      return;
    }
    this.reading = true;
    try {
      const [inbox, runs] = await Promise.all([
        this.ask(["inbox", "--json"]),
        this.ask(["runs", "--json", "--limit", MOST_RUNS]),
      ]);
      if (this.shown !== inbox + runs) {
        this.shown = inbox + runs;
        this.questions = JSON.parse(inbox).filter((entry) => entry.prompt !== undefined);
        this.runs = JSON.parse(runs);
        this.show();
      }
    } catch (error) {
      this.note(`questions and runs are not shown: ${error instanceof Error ? error.message : error}`);
    } finally {
      this.reading = false;
    }
  }

  show() {
    const count = this.questions.length;
    this.view.badge = { value: count, tooltip: `${count} waiting for you` };
    this.status.text = `$(question) ${count}`;
    this.status.tooltip = `Quire: ${count === 1 ? "1 question is" : `${count} questions are`} waiting for you`;
    this.status[count > 0 ? "show" : "hide"]();
    this.changed.fire(undefined);
  }

  getChildren(group) {
    if (group === undefined) {
      return [{ group: "Waiting for you", entries: this.questions }, { group: "Recent runs", entries: this.runs }];
    }
    return group.entries ?? [];
  }

  getTreeItem(node) {
    if (node.entries !== undefined) {
      const item = new vscode.TreeItem(node.group, vscode.TreeItemCollapsibleState.Expanded);
      item.id = node.group;
      item.description = node.entries.length === 0 ? "none" : String(node.entries.length);
      return item;
    }
    return node.prompt === undefined ? runItem(node) : questionItem(node);
  }
}

function questionItem(question) {
  const item = new vscode.TreeItem(oneLine(question.prompt));
  item.id = `${question.run} ${question.path}`;
  item.description = `${oneLine(question.title)}, step ${question.way}`;
  item.tooltip = `${question.prompt}\n\nClick to answer. The run continues.`;
  item.iconPath = new vscode.ThemeIcon("question", new vscode.ThemeColor("charts.yellow"));
  item.command = { command: "quire.answer", title: "Answer", arguments: [question] };
  item.contextValue = "question";
  return item;
}

function runItem(run) {
  const item = new vscode.TreeItem(oneLine(run.title));
  item.id = run.id;
  item.description = `${run.status.replaceAll("_", " ")}${run.step ? `, step ${run.step}` : ""}`;
  item.tooltip = `${run.document} · ${run.id} · ${new Date(run.created_at * 1000).toLocaleString()}`;
  item.iconPath = new vscode.ThemeIcon(ICONS[run.status] ?? "circle-outline");
  item.command = { command: "quire.showRun", title: "Show", arguments: [run.id] };
  item.contextValue = "run";
  return item;
}

function oneLine(text) {
  return String(text).replace(/\s+/g, " ").trim();
}

module.exports = { Inbox, oneLine };
