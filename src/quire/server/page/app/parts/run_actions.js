// The actions of a run that are legal now, each with its command. What spends money or changes a run asks first.

import { ApiProblem, download, part, post } from "../api.js";
import { lostSince } from "../feed.js";
import { html, useState } from "../html.js";
import { go } from "../router.js";
import { Command, copyText, ProblemBox } from "./basics.js";
import { Dialog } from "./dialog.js";
import { Icon } from "./icon.js";
import { focusAnswer } from "./run_question.js";
import { ResumeForm } from "./run_resume.js";

/** @type {Record<string, { word: string, icon: string, kind?: string }>} */
const SHOWN = {
  answer: { word: "Answer", icon: "question", kind: "primary" },
  resume: { word: "Resume", icon: "play", kind: "primary" },
  pause: { word: "Pause after this step", icon: "pause" },
  cancel: { word: "Cancel", icon: "stop", kind: "danger" },
  fork: { word: "Fork", icon: "fork" },
  compare: { word: "Compare", icon: "compare" },
  export: { word: "Export", icon: "download" },
};

/** @param {{ head: any, store: import("../run_store.js").RunStore }} props */
export function RunActions({ head, store }) {
  const [asked, setAsked] = useState("");
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const away = lostSince.value > 0;
  /** @param {() => Promise<unknown>} work */
  const attempt = async (work) => {
    setProblem(null);
    try {
      await work();
      setAsked("");
      store.load();
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error;
      setProblem(error.problem);
    }
  };
  /** @param {any} action */
  const act = ({ name }) => {
    const question = head.questions[0];
    switch (name) {
      case "answer":
        if (document.querySelector(".question-bar")) return focusAnswer();
        return go(`/runs/${head.id}/steps/${part(question.path)}`);
      case "fork":
        return go(`/runs/${head.id}/fork`);
      case "compare":
        return go(head.origin ? `/compare/${head.origin.run}/${head.id}` : `/runs?compare=${head.id}`);
      case "export":
        return attempt(() => download(`/runs/${part(head.id)}/export`, `${head.id}.jsonl`));
      case "pause":
        return attempt(() => post(`/runs/${part(head.id)}/pause`));
      default:
        setProblem(null);
        return setAsked(name);
    }
  };
  return html`
    <div class="actions run-actions">
      ${head.actions.map((/** @type {any} */ action) => {
        const { word, icon, kind = "" } = SHOWN[action.name];
        return html`
          <span class="action" key=${action.name}>
            <button type="button" class="button ${kind}" disabled=${away}
              title=${away ? "The server cannot be reached" : action.command ?? "Ctrl-C in the terminal that drives it"}
              onClick=${() => act(action)}><${Icon} name=${icon} />${word}</button>
            ${action.command && html`<${CopyCommand} word=${word} command=${action.command} />`}
          </span>
        `;
      })}
    </div>
    ${head.advice?.length > 0 &&
      html`<ul class="advice">${
        head.advice.map((/** @type {string} */ line) => html`<li class="pre">${line}</li>`)
      }</ul>`}
    ${problem && !asked && html`<${ProblemBox} problem=${problem} />`}
    ${asked === "resume" && html`
      <${Dialog} title="Resume this run" onClose=${() => setAsked("")}>
        <${ResumeForm} head=${head} problem=${problem} resume=${(/** @type {any} */ body) =>
          attempt(() => post(`/runs/${part(head.id)}/resume`, body))} />
        </${Dialog}>
    `}
    ${asked === "cancel" && html`
      <${Dialog} title="Cancel this run?" onClose=${() => setAsked("")}>
        <p>It stops as soon as it can. Its steps stay recorded, and it can be resumed later.</p>
        <${Command} command=${head.actions.find((/** @type {any} */ one) => one.name === "cancel")?.command ?? ""} />
        ${problem && html`<${ProblemBox} problem=${problem} />`}
        <div class="actions">
          <button type="button" class="button danger" onClick=${() =>
            attempt(() => post(`/runs/${part(head.id)}/cancel`))}>Cancel the run</button>
          <button type="button" class="button" onClick=${() => setAsked("")}>Keep it running</button>
        </div>
      </${Dialog}>
    `}
  `;
}

/** A small button beside an action. @param {{ word: string, command: string }} props */
export function CopyCommand({ word, command }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await copyText(command);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return html`
    <button type="button" class="copy-command" title=${command} aria-label="${word} as a command: ${command}"
      onClick=${copy}>
      <${Icon} name=${copied ? "check" : "terminal"} />
      <span class="visually-hidden" role="status">${copied ? "copied" : ""}</span>
    </button>
  `;
}
