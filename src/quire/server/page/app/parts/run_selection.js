// Several runs at once: a bar that says what is selected, and for each action a dialog that says what it does to how
// many runs before it is done.

import { ApiProblem, download, part, post, resumeAll } from "../api.js";
import { lostSince } from "../feed.js";
import { html, useEffect, useState } from "../html.js";
import { go } from "../router.js";
import { number, plural } from "../words.js";
import { Command, Placeholder, ProblemBox } from "./basics.js";
import { Dialog } from "./dialog.js";
import { Icon } from "./icon.js";

/** @typedef {"resume" | "cancel" | "export" | "prune"} Action */
/** @type {Record<Action, { word: string, icon: string, kind: string, does: (count: number) => string, none: string }>} */
const ACTIONS = {
  resume: {
    word: "Resume",
    icon: "play",
    kind: "primary",
    does: (count) =>
      `Continues ${plural(count, "run")} from where ${
        count === 1 ? "it" : "they"
      } stopped. The steps to come may cost money.`,
    none: "None of them can be resumed: they run, wait for an answer, or have completed.",
  },
  cancel: {
    word: "Cancel",
    icon: "stop",
    kind: "danger",
    does: (count) =>
      `Stops ${plural(count, "run")} as soon as possible. Their steps stay recorded, and they can be resumed later.`,
    none: "None of them can be cancelled: they have ended already.",
  },
  export: {
    word: "Export",
    icon: "download",
    kind: "primary",
    does: (count) =>
      `Saves ${
        plural(count, "file")
      }, one for each run: its document, journal, events and result, with a chain of hashes.`,
    none: "",
  },
  prune: {
    word: "Delete",
    icon: "cross",
    kind: "danger",
    does: (count) =>
      `Removes ${
        plural(count, "run")
      } for good, with their journals and the texts that no other run uses. This cannot be undone.`,
    none: "None of them can be deleted: only runs that have ended are, and no process may be about to drive them.",
  },
};

/** @param {{ selected: string[], clear: () => void, done: (gone: string[]) => void }} props */
export function SelectionBar({ selected, clear, done }) {
  const [asked, setAsked] = useState(/** @type {Action | ""} */ (""));
  const away = lostSince.value > 0;
  const reason = away ? "The server cannot be reached" : undefined;
  if (!selected.length) return null;
  return html`
    <div class="selection" role="region" aria-label="Selected runs">
      <strong role="status">${plural(selected.length, "run")} selected</strong>
      <div class="actions">
        <button type="button" class="button" disabled=${selected.length !== 2}
          title=${selected.length === 2 ? undefined : "Select two runs to compare them"}
          onClick=${() => go(`/compare/${part(selected[0])}/${part(selected[1])}`)}>
          <${Icon} name="compare" />Compare</button>
        ${/** @type {Action[]} */ (Object.keys(ACTIONS)).map((name) =>
          html`
            <button type="button" key=${name} class="button ${ACTIONS[name].kind === "danger" ? "danger" : ""}"
              disabled=${away} title=${reason} onClick=${() => setAsked(name)}>
              <${Icon} name=${ACTIONS[name].icon} />${ACTIONS[name].word}</button>
          `
        )}
        <button type="button" class="button plain" onClick=${clear}>Clear</button>
      </div>
      ${asked && html`
        <${Confirm} action=${asked} selected=${selected} close=${() => setAsked("")} done=${(
          /** @type {string[]} */ gone,
        ) => {
          setAsked("");
          done(gone);
        }} />
      `}
    </div>
  `;
}

/** @param {{ action: Action, selected: string[], close: () => void, done: (gone: string[]) => void }} props */
export function Confirm({ action, selected, close, done }) {
  const [plan, setPlan] = useState(/** @type {any} */ (null));
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const [at, setAt] = useState(-1);
  const [failed, setFailed] = useState(/** @type {{ run: string, detail: string }[]} */ ([]));
  const { word, kind, does, none } = ACTIONS[action];
  useEffect(() => {
    post("/runs/actions", { runs: selected }).then(setPlan, (error) => setProblem(error.problem ?? null));
  }, []);
  const runs = /** @type {string[]} */ (plan?.[action].runs ?? []);
  const others = selected.length - runs.length;
  const perform = async () => {
    setProblem(null);
    try {
      const wrong = await performAll(action, runs, setAt);
      if (!wrong.length) return done(action === "prune" ? runs : []);
      setFailed(wrong);
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error;
      setProblem(error.problem);
    }
    setAt(-1);
  };
  return html`
    <${Dialog} title="${word} ${plural(runs.length || selected.length, "run")}?" onClose=${close}>
      ${!plan && !problem && html`<${Placeholder} lines=${2} />`}
      ${plan && html`<p>${runs.length ? does(runs.length) : none}</p>`}
      ${plan && runs.length > 0 && others > 0 && html`
        <p class="soft">${others === 1
          ? "The other selected run stays as it is."
          : `The other ${number(others)} selected runs stay as they are.`}</p>
      `}
      ${action === "prune" && runs.length > 0 && html`
        <p class="soft">${plural(plan.effects ?? plan.prune.effects, "recorded effect")}, ${plural(
          plan.prune.texts,
          "text",
        )},
          ${number(plan.prune.bytes)} bytes. The command removes by age and status.</p>
      `}
      ${runs.length > 0 && html`<${Command} command=${plan[action].command} />`}
      ${failed.map((one) => html`<p key=${one.run} class="field-problem">${one.run}: ${one.detail}</p>`)}
      ${problem && html`<${ProblemBox} problem=${problem} />`}
      <div class="actions">
        ${runs.length > 0 && html`
          <button type="button" class="button ${kind}" disabled=${at >= 0} onClick=${perform}>
            ${at >= 0 ? `${at} of ${runs.length}…` : `${word} ${plural(runs.length, "run")}`}</button>
        `}
        <button type="button" class="button" onClick=${close}>Close</button>
      </div>
    </${Dialog}>
  `;
}

/**
 * @param {Action} action
 * @param {string[]} runs
 * @param {(at: number) => void} progress
 * @returns {Promise<{ run: string, detail: string }[]>} the runs for which it did not work
 */
async function performAll(action, runs, progress) {
  progress(0);
  if (action === "prune") {
    await post("/runs/prune", { runs });
    return [];
  }
  if (action === "resume") return await resumeAll(runs, progress);
  const wrong = [];
  for (const [at, run] of runs.entries()) {
    progress(at);
    try {
      if (action === "export") await download(`/runs/${part(run)}/export`, `${run}.jsonl`);
      else await post(`/runs/${part(run)}/${action}`);
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error;
      wrong.push({ run, detail: error.problem.detail });
    }
  }
  return wrong;
}
