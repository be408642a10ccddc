// Dialogs: opened over the page, closed by Esc, with the focus given back to where it was.

import { html, useEffect, useRef } from "../html.js";
import { Icon } from "./icon.js";

/** @param {{ title: string, onClose: () => void, children?: unknown, wide?: boolean, drawer?: boolean }} props */
export function Dialog({ title, onClose, children, wide = false, drawer = false }) {
  const element = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => {
    const before = document.activeElement;
    element.current?.showModal();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return html`
    <dialog ref=${element} class="dialog ${wide ? "wide" : ""} ${drawer
      ? "drawer"
      : ""}" aria-labelledby="dialog-title" onClose=${onClose}>
      <header>
        <h2 id="dialog-title">${title}</h2>
        <button type="button" class="icon-button" aria-label="Close"
          onClick=${onClose}><${Icon} name="cross" /></button>
      </header>
      <div class="dialog-body">${children}</div>
    </dialog>
  `;
}
