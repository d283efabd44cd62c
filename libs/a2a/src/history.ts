import type { Message } from './model.js';

/** The part of a history a caller asked for: unset = all, 0 = none, n = the last n (A2A 1.0 §3.2.4). */
export const historyTail = (history: readonly Message[], historyLength: number | undefined): Message[] =>
  historyLength === undefined ? [...history] : history.slice(Math.max(0, history.length - historyLength));
