// Draws a Mermaid diagram of a model. Settings inside the diagram cannot change looks, layout or security.

// @ts-types="../types/mermaid.d.ts"
import mermaid from "../vendor-lazy/mermaid/mermaid.esm.min.mjs";
import { serve } from "./talk.js";

// themeCSS and fonts can name addresses; layouts other than dagre are not shipped.
const LOCKED = [
  ...["secure", "securityLevel", "startOnLoad", "maxTextSize", "maxEdges", "suppressErrorRendering", "dompurifyConfig"],
  ...["themeCSS", "themeVariables", "theme", "darkMode", "look", "layout", "fontFamily", "altFontFamily", "htmlLabels"],
  ...[
    "fontSize",
    "deterministicIds",
    "deterministicIDSeed",
    "arrowMarkerAbsolute",
    "legacyMathML",
    "forceLegacyMathML",
  ],
];
const FONT = "system-ui, sans-serif";
let drawings = 0;

/** @param {import("./talk.js").Theme} theme */
function configure(theme) {
  mermaid.initialize({
    startOnLoad: false,
    securityLevel: "strict",
    secure: LOCKED,
    suppressErrorRendering: true,
    theme: theme === "dark" ? "dark" : "default",
    darkMode: theme === "dark",
    look: "classic",
    layout: "dagre",
    fontFamily: FONT,
  });
}

configure("light");
serve(async ({ text, theme }, place) => {
  configure(theme);
  const { svg } = await mermaid.render(`drawing-${++drawings}`, text);
  place.innerHTML = svg;
});
