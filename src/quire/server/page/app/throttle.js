// Reads data again after events, but not more often than the server can bear: a long run is replayed for every read.

import { listen } from "./feed.js";
import { useEffect, useRef } from "./html.js";
import { useResource } from "./resource.js";

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
  const found = useResource(path);
  const state = useRef({ began: 0, took: 0, timer: 0, due: false });
  const asked = useRef({ wants, reload: found.reload });
  asked.current = { wants, reload: found.reload };

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
  }, [found.data, found.problem]);
  useEffect(() => {
    const stop = listen((frame) => asked.current.wants(frame) && later());
    return () => {
      stop();
      clearTimeout(state.current.timer);
      state.current = { began: 0, took: 0, timer: 0, due: false };
    };
  }, [path]);
  return found;
}
