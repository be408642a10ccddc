// Several runs at once: a bar that says what is selected, and for each action a dialog that says what it does to how
// many runs before it is done.

import { ApiProblem, download, part, post, tryTo } from "../api.js";
import { lostSince } from "../feed.js";
import { html, useEffect, useState } from "../html.js";
import { go } from "../router.js";
import { money, number, plural } from "../words.js";
import { Command, Placeholder, ProblemBox } from "./basics.js";
import { Dialog } from "./dialog.js";
import { Icon } from "./icon.js";

const MOST_RESUMED = 100;

/** @typedef {"resume" | "cancel" | "export" | "prune"} Action */
/** @type {Record<Action, { word: string, icon: string, kind: string, does: (count: number) => string, none: string }>} */
const ACTIONS = {
  resume: {
    word: "Try again",
    icon: "again",
    kind: "primary",
    does: () => "Each continues where it stopped; completed steps are not done again.",
    none: "None of them can be resumed.",
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

/** @param {{ selected: string[], clear: () => void }} props */
export function SelectionBar({ selected, clear }) {
  const [asked, setAsked] = useState(/** @type {Action | ""} */ (""));
  const away = lostSince.value > 0;
  const reason = away ? "The server cannot be reached" : undefined;
  if (!selected.length) return null;
  const [first, ...others] = /** @type {Action[]} */ (Object.keys(ACTIONS));
  const button = (/** @type {Action} */ name) =>
    html`
      <button type="button" key=${name} class="button act-${name} ${ACTIONS[name].kind === "danger" ? "danger" : ""}"
        disabled=${away} title=${reason} onClick=${() => setAsked(name)}>
        <${Icon} name=${ACTIONS[name].icon} />${ACTIONS[name].word}</button>
    `;
  return html`
    <div class="selection" role="region" aria-label="Selected runs">
      <strong role="status">${plural(selected.length, "run")} selected</strong>
      <div class="actions">
        ${button(first)}
        <button type="button" class="button" disabled=${selected.length !== 2}
          title=${selected.length === 2 ? undefined : "Select two runs to compare them"}
          onClick=${() => go(`/compare/${part(selected[0])}/${part(selected[1])}`)}>
          <${Icon} name="compare" />Compare</button>
        ${others.map(button)}
        <button type="button" class="button plain" onClick=${clear}>Clear</button>
      </div>
      ${asked && html`
        <${Confirm} action=${asked} selected=${selected} close=${() =>
          setAsked("")} done=${() => (setAsked(""), clear())} />
      `}
    </div>
  `;
}

/** Says what an action does to how many runs, then does it. @param {{ action: Action, selected: string[], close: () => void, done: () => void }} props */
export function Confirm({ action, selected, close, done }) {
  const [plan, setPlan] = useState(/** @type {any} */ (null));
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const [at, setAt] = useState(-1);
  const [failed, setFailed] = useState(/** @type {{ run: string, detail: string }[]} */ ([]));
  const [budget, setBudget] = useState("");
  const { word, kind, does, none } = ACTIONS[action];
  const resumes = action === "resume";
  const wrong = budget !== "" && !(Number(budget) >= 0);
  const body = {
    runs: selected.slice(0, resumes ? MOST_RESUMED : undefined),
    ...(budget && { budget: Number(budget) }),
  };
  useEffect(() => {
    if (wrong) return;
    let gone = false;
    const work = resumes ? post("/runs/resume", { ...body, dry_run: true }) : post("/runs/actions", body);
    work.then((data) => !gone && setPlan(resumes ? planOf(data) : data), (error) => setProblem(error.problem ?? null));
    return () => {
      gone = true;
    };
  }, [budget]);
  const runs = /** @type {string[]} */ (plan?.[action].runs ?? []);
  const others = selected.length - runs.length;
  const perform = async () => {
    setAt(0);
    await tryTo(setProblem, async () => {
      const left = resumes ? await resume(body, runs) : await performAll(action, runs, setAt);
      if (!left.length) return done();
      setFailed(left);
    });
    setAt(-1);
  };
  const many = plural(runs.length || selected.length, "run");
  const title = resumes ? `Try ${many} again` : `${word} ${many}`;
  return html`
    <${Dialog} title="${title}?" onClose=${close}>
      ${!plan && !problem && html`<${Placeholder} lines=${2} />`}
      ${plan && html`<p>${runs.length ? does(runs.length) : none}</p>`}
      ${plan && runs.length > 0 && others > 0 && html`
        <p class="soft">${others === 1
          ? "The other selected run stays as it is."
          : `The other ${number(others)} selected runs stay as they are.`}</p>
      `}
      ${resumes && plan && html`
        ${runs.length > 0 && html`
          <p class="receipt-line" role="status">${upper(plan.resume.summary)}.</p>
          <label for="resume-budget">Budget in dollars for all of them <span class="soft">an equal part for each</span></label>
          <input id="resume-budget" inputmode="decimal" value=${budget} placeholder="as each run has it"
            aria-invalid=${wrong}
            onInput=${(/** @type {any} */ event) => setBudget(event.target.value.trim())} />
        `}
        <ul class="resume-lines">${plan.resume.lines.map((/** @type {any} */ line) =>
          html`<li key=${line.run} class=${
            line.problem ? "soft" : ""
          }><span>${line.label}</span><span class="soft small">${
            line
              .problem ?? (line.budget === null ? "no budget" : `up to ${money(line.budget)} in all`)
          }</span></li>`
        )}</ul>
      `}
      ${action === "prune" && runs.length > 0 && html`
        <p class="soft">${plural(plan.prune.effects, "recorded effect")}, ${plural(plan.prune.texts, "text")},
          ${number(plan.prune.bytes)} bytes. The command removes by age and status.</p>
      `}
      ${runs.length > 0 && html`<${Command} command=${plan[action].command} />`}
      ${failed.map((one) => html`<p key=${one.run} class="field-problem">${one.run}: ${one.detail}</p>`)}
      ${problem && html`<${ProblemBox} problem=${problem} />`}
      <div class="actions">
        ${runs.length > 0 && html`
          <button type="button" class="button ${kind}" disabled=${at >= 0 || wrong} onClick=${perform}>
            ${at >= 0 ? `${at} of ${runs.length}…` : title}</button>
        `}
        <button type="button" class="button" onClick=${close}>Close</button>
      </div>
    </${Dialog}>
  `;
}

/** The receipt of a resume as a plan: the runs that continue, and a line for each of all. @param {any} receipt */
function planOf({ runs, summary, command }) {
  const able = runs.filter((/** @type {any} */ line) => !line.problem).map((/** @type {any} */ line) => line.run);
  return { resume: { runs: able, lines: runs, summary, command } };
}

/** @param {any} body @param {string[]} runs @returns {Promise<{ run: string, detail: string }[]>} the runs that do not continue */
async function resume(body, runs) {
  const { runs: lines } = await post("/runs/resume", { ...body, runs });
  return lines.filter((/** @type {any} */ line) => line.problem).map((/** @type {any} */ line) => ({
    run: line.label,
    detail: line.problem,
  }));
}

/** @param {string} text */
function upper(text) {
  return text[0].toUpperCase() + text.slice(1);
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
