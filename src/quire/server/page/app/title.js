// The title of the tab: each screen says its own, and the shell shows it.

import { signal, useLayoutEffect } from "./html.js";

/** The title of the screen that is shown; empty for Now. */
export const title = signal("");

/** Sets the title while a screen is shown. @param {string} text */
export function useTitle(text) {
  useLayoutEffect(() => {
    title.value = text;
  }, [text]);
}
