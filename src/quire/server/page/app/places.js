// The screens that are about the whole workspace, by the pattern of their address.

import { Now } from "./screens/now.js";
import { Question } from "./screens/question.js";

/** @type {[string, any][]} */
export const PLACES = [
  ["/", Now],
  ["/q/:run/*path", Question],
];
