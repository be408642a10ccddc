// A QR code of the address of this page with its token, so that a phone can be signed in by its camera.

// @ts-types="../../types/lean-qr.d.ts"
import { correction, generate, mode } from "../../vendor/lean-qr.js";
import { html, useState } from "../html.js";
import { token } from "../session.js";
import { Dialog } from "./dialog.js";

const QUIET = 4;
const LARGEST = 20;

/** @param {{ onClose: () => void }} props */
export function QrDialog({ onClose }) {
  const [origin, setOrigin] = useState(location.origin);
  const isLocal = /^https?:\/\/(localhost|127\.|\[::1\])/.test(origin);
  const address = `${origin.replace(/\/$/, "")}${location.pathname}${location.search}#token=${token.value}`;
  return html`
    <${Dialog} title="Open on another device" onClose=${onClose}>
      <p>The code holds the address of this page with the token of the server. Show it only to your own devices.</p>
      <label for="qr-origin">The server, as the other device reaches it</label>
      <input id="qr-origin" value=${origin} onInput=${(/** @type {any} */ event) => setOrigin(event.target.value)} />
      ${isLocal && html`
        <p class="soft">This address is reached from this machine only. With a tunnel or a proxy of yours, start the
          server with <code>quire serve --allow-host NAME</code> and write that name here.</p>
      `}
      <${QrCode} text=${address} />
    </${Dialog}>
  `;
}

/** @param {{ text: string }} props */
function QrCode({ text }) {
  const modules = qrModules(text);
  if (!modules) return html`<p class="soft">The address is too long for a code.</p>`;
  const size = modules.length + 2 * QUIET;
  const dark = modules.flatMap((row, y) =>
    row.flatMap((isDark, x) => isDark ? [`M${x + QUIET} ${y + QUIET}h1v1h-1z`] : [])
  );
  return html`
    <svg class="qr" viewBox="0 0 ${size} ${size}" role="img" aria-label="QR code of the address with its token">
      <rect class="qr-paper" width=${size} height=${size} />
      <path class="qr-ink" d=${dark.join("")} />
    </svg>
  `;
}

/**
 * The code of a text at level M, row by row, with true for dark; null for a text that is too long.
 *
 * @param {string} text
 * @returns {boolean[][] | null}
 */
export function qrModules(text) {
  const level = { minCorrectionLevel: correction.M, maxCorrectionLevel: correction.M, maxVersion: LARGEST };
  try {
    const code = generate(mode.bytes(new TextEncoder().encode(text)), level);
    const all = [...Array(code.size).keys()];
    return all.map((y) => all.map((x) => code.get(x, y)));
  } catch {
    return null;
  }
}
