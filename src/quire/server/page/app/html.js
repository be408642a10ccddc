// Binds htm to Preact. The only module that knows which library draws the page.

import { Fragment, h, render } from "preact";
import { useCallback, useEffect, useErrorBoundary, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import htm from "htm";
import { batch, computed, effect, signal } from "@preact/signals";

/** Draws a component: html`<p>${text}</p>`. Values are text; no value becomes markup. */
export const html = htm.bind(h);

export {
  batch,
  computed,
  effect,
  Fragment,
  h,
  render,
  signal,
  useCallback,
  useEffect,
  useErrorBoundary,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
};
