// One question, made for a phone: what led to it, the question, the answer, and nothing else.

import { answerOf, pathOf } from "../held.js";
import { html, useEffect, useState } from "../html.js";
import { Command, Placeholder, ProblemBox } from "../parts/basics.js";
import { Icon } from "../parts/icon.js";
import { AnsweredElsewhere, Answering, Expiry, Freed, Led, Prompt } from "../parts/question.js";
import { useResource } from "../resource.js";
import { Link, useTitle } from "../router.js";
import { ago } from "../words.js";

/** @param {{ run: string, path: string }} props */
export function Question({ run, path }) {
  const place = pathOf({ run, path });
  const asked = useResource(place, (frame) => frame.event === "questions");
  const [shown, setShown] = useState(/** @type {any} */ (null));
  const { data, problem } = asked;
  useEffect(() => {
    if (data?.open && shown?.hash !== data.hash) setShown(data);
  }, [data]);
  const question = data?.open ? data : shown;
  useTitle(`Question${data ? ` of ${data.subject ?? data.title}` : ""}`);
  const closed = data && !data.open ? data.answer : null;
  if (question) {
    const changed = shown !== null && data?.open === true && shown.hash !== data.hash;
    return html`<${OneQuestion} key=${place} ...${{ question, closed, changed, reload: asked.reload, problem }} />`;
  }
  if (closed) {
    return html`
      <h1 tabindex="-1">${data.title}</h1>
      <${AnsweredElsewhere} question=${{ run, path }} answer=${closed} />
      <${Onward} run=${run} />
    `;
  }
  if (!problem) return html`<h1 tabindex="-1">Question</h1>${asked.slow && html`<${Placeholder} lines=${4} />`}`;
  return html`
    <h1 tabindex="-1">Question</h1>
    <${ProblemBox} problem=${problem} retry=${asked.reload} />
    <${Onward} run=${run} />
  `;
}

/** @param {{ question: any, closed: any, changed: boolean, reload: () => void, problem: any }} props */
function OneQuestion({ question, closed, changed, reload, problem }) {
  const answer = answerOf(question);
  const isOurs = answer?.state === "answered";
  const [qr, setQr] = useState(/** @type {any} */ (null));
  const showQr = async () => setQr(await import("../parts/qr_dialog.js"));
  const red = question.frees?.red;
  const isOver = isOurs || closed || answer?.problem?.code === "already-answered";
  return html`
    <article class="one-question">
      <p class="soft">
        <${Link}
          to="/runs/${question.run}">${question.subject}</${Link}>, ${question.title}, step ${question
            .way}${question.step_title &&
            `: ${question.step_title}`}; asked ${ago(question.asked_at)}${question.expires_at
            ? html`, <${Expiry} at=${question.expires_at} />`
            : ""}
      </p>
      ${question.led.length > 0 && html`
        <section aria-label="What led here">
          <${Led} led=${question.led} run=${question.run} />
        </section>
      `}
      ${question.html
        ? html`
          <h1 tabindex="-1" class="visually-hidden">Question of ${question.title}</h1>
          <${Prompt} question=${question} />
        `
        : html`<h1 tabindex="-1" class="prompt pre">${question.prompt}</h1>`}
      ${changed && html`<p class="bar" role="status"><${Icon} name="warning" />The question was worded anew.</p>`}
      ${red && !isOver && html`<${Freed} frees=${question.frees} />`}
      ${closed && !answer ? html`<${AnsweredElsewhere} question=${question} answer=${closed} />` : html`
        <${Answering} question=${question} reload=${reload} keys=${true} onward=". The run continues."
          word=${red ? question.frees.word : ""} />
      `}
      ${problem && !closed && html`<${ProblemBox} problem=${problem} retry=${reload} />`}
      ${isOver ? html`<${Onward} run=${question.run} />` : html`
        <div class="below-card">
          <button type="button" class="button" onClick=${showQr}>
            <${Icon} name="qr" />Open on another device</button>
          <${Command} command=${question.command} />
        </div>
      `}
      ${qr && html`<${qr.QrDialog} onClose=${() => setQr(null)} />`}
    </article>
  `;
}

/** @param {{ run: string }} props */
function Onward({ run }) {
  return html`
    <p class="actions onward">
      <${Link} class="button" to="/">Other questions</${Link}>
      <${Link} class="button" to="/runs/${run}">The run</${Link}>
    </p>
  `;
}
