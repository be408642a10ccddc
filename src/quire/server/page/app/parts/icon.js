// Icons: our own line drawings on a grid of 16, in the colour of the text around them.

import { html } from "../html.js";

/** @type {Record<string, string>} */
const DRAWN = {
  now: "M2.5 9.5 4.6 3h6.8l2.1 6.5v3.5h-11zM2.5 9.5h3.2l.8 1.7h3l.8-1.7h3.2",
  documents: "M4 1.8h5l3 3v9.4H4zM9 1.8v3h3M6 8h4M6 10.7h4",
  runs: "M3 3.2 7 6 3 8.8zM9 4h4.5M9 8h4.5M3 12h10.5",
  artifacts: "M8 1.8 13.6 5v6L8 14.2 2.4 11V5zM2.6 5 8 8.1 13.4 5M8 8.1v6",
  search: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.3 10.3 14 14",
  trust: "M8 1.8 13 3.6v4c0 3.2-2 5.4-5 6.6-3-1.2-5-3.4-5-6.6v-4zM5.8 7.8l1.6 1.6 2.9-3",
  health: "M1.8 8.2h3l1.6-4 2.9 7.6 1.7-3.6h3.2",
  check: "M3.2 8.4 6.4 11.6 12.8 4.8",
  cross: "M4 4l8 8M12 4l-8 8",
  clock: "M8 14a6 6 0 1 0 0-12 6 6 0 0 0 0 12zM8 4.6V8l2.4 1.6",
  pause: "M5.4 3.6v8.8M10.6 3.6v8.8",
  play: "M4.8 3 12.4 8l-7.6 5z",
  stop: "M4 4h8v8H4z",
  skip: "M3.4 3.6 8.6 8l-5.2 4.4zM11.6 3.6v8.8",
  question: "M5.4 6a2.6 2.6 0 1 1 3.7 2.4c-.8.4-1.1.8-1.1 1.6M8 12.6v.1",
  running: "M8 2.4A5.6 5.6 0 1 1 2.4 8",
  broken: "M8 1.8v5M8 14.2v-3.6M3 8h3M13 8h-3",
  dot: "M8 9.4a1.4 1.4 0 1 0 0-2.8 1.4 1.4 0 0 0 0 2.8z",
  fork: "M4.5 2.5v11M4.5 8.5c4.5 0 6-1.2 6-4M10.5 4.6a1.2 1.2 0 1 0 0-2.4 1.2 1.2 0 0 0 0 2.4z",
  compare: "M5 2.5v11M11 2.5v11M2.5 5.5H5M2.5 9H5M11 7h2.5M11 10.5h2.5",
  share:
    "M12.5 2.5a2 2 0 1 1 0 4 2 2 0 0 1 0-4zM3.5 6a2 2 0 1 1 0 4 2 2 0 0 1 0-4zM12.5 9.5a2 2 0 1 1 0 4 2 2 0 0 1 0-4zM5.3 7.1l5.4-2.2M5.3 8.9l5.4 2.2",
  copy: "M5.5 5.5h7v8h-7zM3.5 10.5v-8h7",
  terminal: "M2 3h12v10H2zM4.4 6l2 2-2 2M8 10h3",
  model: "M2.6 3.4h10.8v7.4H8.2L5 13.4v-2.6H2.6zM5.4 7.1v.1M8 7.1v.1M10.6 7.1v.1",
  plus: "M8 3.5v9M3.5 8h9",
  minus: "M3.5 8h9",
  again: "M12.9 9.4A5.2 5.2 0 1 1 12.6 5.6M12.8 2.6v3.2H9.6",
  down: "M4 6l4 4 4-4",
  right: "M6 4l4 4-4 4",
  left: "M10 4 6 8l4 4",
  more: "M3.5 8v.1M8 8v.1M12.5 8v.1",
  sun:
    "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM8 1.4v1.4M8 13.2v1.4M1.4 8h1.4M13.2 8h1.4M3.3 3.3l1 1M11.7 11.7l1 1M3.3 12.7l1-1M11.7 4.3l1-1",
  moon: "M12.8 9.6A5.4 5.4 0 0 1 6.4 3.2a5.4 5.4 0 1 0 6.4 6.4z",
  bell: "M4 11V7a4 4 0 0 1 8 0v4l1.2 1.2H2.8zM6.8 14h2.4",
  qr: "M2.5 2.5h4v4h-4zM9.5 2.5h4v4h-4zM2.5 9.5h4v4h-4zM9.5 9.5h2v2h-2zM13.5 9.5v.1M13.5 13.5h-2v-.1",
  keyboard: "M1.8 4h12.4v8H1.8zM4 6.4v.1M6.6 6.4v.1M9.2 6.4v.1M11.8 6.4v.1M5 9.6h6",
  warning: "M8 2.2 14.4 13.4H1.6zM8 6.4v3.2M8 11.5v.1",
  download: "M8 2.4v7.4M4.8 6.8 8 10l3.2-3.2M2.8 13.2h10.4",
  external: "M9.2 2.8h4v4M13.2 2.8 7.4 8.6M11.4 9v4.2H2.8V4.6h4.4",
  items: "M3 3h4v4H3zM9 3h4v4H9zM3 9h4v4H3zM9 9h4v4H9z",
  result: "M2.8 2.8h10.4v10.4H2.8zM5.2 8.2l2 2 3.6-4",
  tool: "M10.8 2.6a3 3 0 0 0-3 4l-5 5 1.6 1.6 5-5a3 3 0 0 0 4-3.6l-1.8 1.6-1.6-.4-.4-1.6z",
  edit: "M3 13l.6-2.8 7.4-7.4 2.2 2.2-7.4 7.4zM9.6 4.2l2.2 2.2",
};

/** @param {{ name: string, label?: string }} props without a label it is only an ornament */
export function Icon({ name, label }) {
  const spoken = label ? { role: "img", "aria-label": label } : { "aria-hidden": "true" };
  return html`
    <svg class="icon icon-${name}" viewBox="0 0 16 16" ...${spoken}>
      <path d=${DRAWN[name] ?? DRAWN.dot} />
    </svg>
  `;
}
