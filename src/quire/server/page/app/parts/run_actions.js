// The actions of a run that are legal now, each with its command. What spends money or changes a run asks first.

import { download, part, post, tryTo } from "../api.js";
import { lostSince } from "../feed.js";
import { html, useState } from "../html.js";
import { go, Link } from "../router.js";
import { Command, ProblemBox } from "./basics.js";
import { Dialog } from "./dialog.js";
import { Icon } from "./icon.js";
import { ResumeForm } from "./run_resume.js";
import { ShareDialog } from "./share_dialog.js";
import { Drawer } from "./start_run.js";

/** @type {Record<string, { word: string, icon: string, kind?: string }>} */
const SHOWN = {
  answer: { word: "Answer", icon: "question", kind: "primary" },
  resume: { word: "Resume", icon: "play", kind: "primary" },
  pause: { word: "Pause after this step", icon: "pause" },
  cancel: { word: "Cancel", icon: "stop", kind: "danger" },
  fork: { word: "Fork", icon: "fork" },
  compare: { word: "Compare", icon: "compare" },
  share: { word: "Share", icon: "share" },
  export: { word: "Export", icon: "download" },
};

/** @param {{ head: any, store: import("../run_store.js").RunStore, answer: (path: string) => void }} props */
export function RunActions({ head, store, answer }) {
  const [menu, setMenu] = useState(false);
  const [asked, setAsked] = useState("");
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const away = lostSince.value > 0;
  /** @param {() => Promise<unknown>} work */
  const attempt = (work) =>
    tryTo(setProblem, async () => {
      await work();
      setAsked("");
      store.load();
    });
  /** @param {any} action */
  const act = ({ name }) => {
    switch (name) {
      case "answer":
        return answer(head.questions[0].path);
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
  const actions = [...head.actions, { name: "share", command: `quire runs share ${head.id}` }];
  const { document_id: document, next } = head;
  /** @param {any} action */
  const button = (action) => {
    const { word, icon, kind = "" } = SHOWN[action.name];
    // Resume is the first thing to do only where it helps.
    const helps = action.name !== "resume" || !head.next || head.next.verb === "resume";
    return html`
      <button type="button" key=${action.name} class="button ${helps ? kind : ""} act-${action.name}" disabled=${away}
        title=${away ? "The server cannot be reached" : action.command ?? "Ctrl-C in the terminal that drives it"}
        onClick=${() => act(action)}><${Icon} name=${icon} />${word}</button>
    `;
  };
  const first = next?.verb === "again";
  const again = document && html`
    <button type="button" class="button act-start ${first ? "primary" : "act-again"}" title="quire run --like ${head
      .id}" disabled=${away}
      onClick=${() => setAsked("again")}><${Icon} name="again" />Run again</button>
  `;
  return html`
    <div class="run-actions">
      ${first && again}
      ${actions.filter((/** @type {any} */ action) => action.name !== "export").map(button)}
      ${document && next?.verb === "fix" && html`
        <${Link} class="button" to="/documents/${part(document)}?tab=source">Open the document</${Link}>
      `}
      ${!first && again}
      <details class="menu" onToggle=${(/** @type {any} */ event) => setMenu(event.currentTarget.open)}>
        <summary class="icon-button" aria-label="All actions" title="All actions"><${Icon} name="more" /></summary>
        ${menu &&
          html`<ul>${
            actions.map((/** @type {any} */ action) =>
              html`<li key=${action.name}>${button(action)}${
                action.command &&
                html`<${Command} command=${action.command} label="${SHOWN[action.name].word} as a command" />`
              }</li>`
            )
          }${
            again &&
            html`<li>${again}<${Command} command="quire run --like ${head.id}" label="Run again as a command" /></li>`
          }</ul>`}
      </details>
    </div>
    ${problem && !asked && html`<${ProblemBox} problem=${problem} />`}
    ${asked === "again" && html`<${Drawer} document=${document} like=${head.id} onClose=${() => setAsked("")} />`}
    ${asked === "resume" && html`
      <${Dialog} title="Resume this run" onClose=${() => setAsked("")}>
        <${ResumeForm} head=${head} problem=${problem} resume=${(/** @type {any} */ body) =>
          attempt(() => post(`/runs/${part(head.id)}/resume`, body))} />
        </${Dialog}>
    `}
    ${asked === "share" && html`<${ShareDialog} head=${head} onClose=${() => setAsked("")} />`}
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
