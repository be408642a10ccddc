// "Start a run": a picker of documents, then the drawer of the one that is chosen.

import { html, useEffect, useState } from "../html.js";
import { useResource } from "../resource.js";
import { Empty, Placeholder, ProblemBox } from "./basics.js";
import { Dialog } from "./dialog.js";
import { Icon } from "./icon.js";

export function StartButton() {
  const [open, setOpen] = useState(false);
  const [chosen, setChosen] = useState("");
  return html`
    <button type="button" class="button primary" data-needs="run"
      onClick=${() => setOpen(true)}><${Icon} name="play" />Start a run</button>
    ${open &&
      html`<${Picker} choose=${(/** @type {string} */ id) => (setOpen(false), setChosen(id))} close=${() =>
        setOpen(false)} />`}
    ${chosen && html`<${Drawer} document=${chosen} onClose=${() => setChosen("")} />`}
  `;
}

/** The drawer, loaded when it is first opened. @param {{ document: string, like?: string, onClose: () => void }} props */
export function Drawer(props) {
  const [part, setPart] = useState(/** @type {any} */ (null));
  useEffect(() => {
    import("./run_drawer.js").then(setPart);
  }, []);
  return part && html`<${part.RunDrawer} ...${props} />`;
}

/** @param {{ choose: (id: string) => void, close: () => void }} props */
function Picker({ choose, close }) {
  const { data, problem, reload } = useResource("/documents", (frame) => frame.event === "documents");
  const [words, setWords] = useState("");
  const fits = (/** @type {any} */ item) =>
    item.runnable &&
    words.toLowerCase().split(/\s+/).every((word) => `${item.title} ${item.id}`.toLowerCase().includes(word));
  const items = (data?.items ?? []).filter(fits);
  return html`
    <${Dialog} title="Start a run" onClose=${close}>
      <input type="search" aria-label="Search documents" placeholder="Words of title or file" autocomplete="off" value=${words}
        onInput=${(/** @type {any} */ event) => setWords(event.target.value)} />
      ${problem && html`<${ProblemBox} problem=${problem} retry=${reload} />`}
      ${!data && !problem && html`<${Placeholder} lines=${4} />`}
      ${data && !items.length && html`<${Empty} title="No document fits." icon="search" />`}
      <ul class="picker">
        ${items.map((/** @type {any} */ item) =>
          html`
            <li key=${item.id}><button type="button" class="row" onClick=${() => choose(item.id)}>
              <span class="row-title">${item.title}</span><span class="soft small">${item.id}</span></button></li>
          `
        )}
      </ul>
    </${Dialog}>
  `;
}
