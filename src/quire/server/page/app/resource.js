// Data of the server as components read it: the last known data stay on the screen while newer ones are fetched.

import { ApiProblem, get } from "./api.js";
import { useEffect, useRef, useState } from "./html.js";
import { listen, lostSince } from "./feed.js";

const KEPT = 60;
/** The last data of each path. @type {Map<string, unknown>} */
const known = new Map();

/** @typedef {import("./api.js").Problem} Problem */
/** @typedef {{ path: string | null, data: any, problem: Problem | null, slow: boolean }} State */
/** @typedef {{ data: any, problem: Problem | null, slow: boolean, reload: () => void }} Resource */

/**
 * Fetches a path, again whenever the path changes or `wants` says so for an event.
 *
 * @param {string | null} path null fetches nothing
 * @param {(frame: import("./feed.js").Frame) => boolean} [wants]
 * @returns {Resource} `slow` is true once a first fetch takes long enough to show a placeholder
 */
export function useResource(path, wants) {
  const first = { path, data: path ? known.get(path) : undefined, problem: null, slow: false };
  const [state, setState] = useState(/** @type {State} */ (first));
  const again = useRef(() => {});
  const asked = useRef(wants);
  asked.current = wants;

  useEffect(() => {
    if (path === null) return;
    let gone = false;
    let running = false;
    let due = false;
    const isNew = !known.has(path);
    setState({ path, data: known.get(path), problem: null, slow: false });
    const timer = setTimeout(() => !gone && setState((now) => ({ ...now, slow: !now.data })), 150);

    const load = async () => {
      if (running) return (due = true);
      running = true;
      try {
        const data = await get(path);
        remember(path, data);
        if (!gone) setState({ path, data, problem: null, slow: false });
      } catch (error) {
        if (gone) return;
        if (!(error instanceof ApiProblem)) throw error;
        // A server that is away takes nothing from the screen: the bar above says so.
        const problem = error.problem.status === 0 && !isNew ? null : error.problem;
        setState((now) => ({ ...now, problem, slow: false }));
      } finally {
        running = false;
        if (due && !gone) {
          due = false;
          setTimeout(load, 250);
        }
      }
    };
    again.current = load;
    load();
    const stop = listen((frame) => asked.current?.(frame) && load());
    let lost = lostSince.value;
    const back = lostSince.subscribe((now) => {
      if (lost && !now) load();
      lost = now;
    });
    return () => {
      gone = true;
      clearTimeout(timer);
      stop();
      back();
    };
  }, [path]);

  const current = state.path === path ? state : { ...state, data: path ? known.get(path) : undefined, problem: null };
  return { ...current, reload: () => again.current() };
}

/**
 * @param {string} path
 * @param {unknown} data
 */
export function remember(path, data) {
  known.delete(path);
  known.set(path, data);
  if (known.size > KEPT) known.delete(known.keys().next().value ?? "");
}

const SHORTEST = 400;
const TIMES = 5;
const GIVEN_UP = 20_000;

/**
 * Fetches a path, and again some time after each event that `wants` accepts. The pause between two reads is several
 * times as long as a read takes.
 *
 * @param {string | null} path
 * @param {(frame: import("./feed.js").Frame) => boolean} wants
 * @returns {import("./resource.js").Resource}
 */
export function useThrottled(path, wants) {
  const resource = useResource(path);
  const state = useRef({ began: 0, took: 0, timer: 0, due: false });
  const asked = useRef({ wants, reload: resource.reload });
  asked.current = { wants, reload: resource.reload };

  const later = () => {
    const now = state.current;
    now.due = true;
    if (now.timer || (now.began && performance.now() - now.began < GIVEN_UP)) return;
    now.timer = setTimeout(() => {
      now.timer = 0;
      now.due = false;
      now.began = performance.now();
      asked.current.reload();
    }, Math.max(SHORTEST, TIMES * now.took));
  };
  useEffect(() => {
    const now = state.current;
    if (now.began) now.took = performance.now() - now.began;
    now.began = 0;
    if (now.due) later();
  }, [resource.data, resource.problem]);
  useEffect(() => {
    const stop = listen((frame) => asked.current.wants(frame) && later());
    return () => {
      stop();
      clearTimeout(state.current.timer);
      state.current = { began: 0, took: 0, timer: 0, due: false };
    };
  }, [path]);
  return resource;
}
