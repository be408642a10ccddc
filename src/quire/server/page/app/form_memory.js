// The last values of a form, kept by this browser for each document until the user clears them.

const PREFIX = "quire-form:";

/** @param {string} document @returns {any} */
export function remembered(document) {
  try {
    return JSON.parse(localStorage.getItem(PREFIX + document) ?? "null");
  } catch {
    return null;
  }
}

/** @param {string} document @param {unknown} values */
export function rememberForm(document, values) {
  try {
    localStorage.setItem(PREFIX + document, JSON.stringify(values));
  } catch {
    // A browser that keeps nothing, or a text that is too long for it.
  }
}

/** @param {string} document */
export function forgetForm(document) {
  try {
    localStorage.removeItem(PREFIX + document);
  } catch {
    // Nothing was kept.
  }
}
