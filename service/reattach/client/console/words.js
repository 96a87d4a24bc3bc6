/**
 * What states and answers are called on screen. The words are the contract's own where it has some, and sentences where people need them.
 */

import { capital } from './text.js'

export const STATES = ['queued', 'running', 'waiting', 'succeeded', 'failed', 'cancelled']

const ENDED = new Set(['succeeded', 'failed', 'cancelled'])

/** Whether nothing can happen to the run any more. */
export function hasEnded(state) {
  return ENDED.has(state)
}

/** One sentence for each state. */
export const STATE_MEANS = {
  queued: 'Waits for a worker to take it.',
  running: 'A worker is on it.',
  waiting: 'Waits for an answer. No worker is held meanwhile.',
  succeeded: 'Ended as it should.',
  failed: 'Ended with an error.',
  cancelled: 'Was stopped.',
}

/** What a request to stop has come to. */
export const DISPOSITIONS = {
  cancelled_before_effect: {
    title: 'Stopped before anything was changed',
    text: 'No tool with an effect had run. There is nothing to undo.',
  },
  cancelled_after_effect: {
    title: 'Stopped, but something had been changed already',
    text: 'These effects took place before the run stopped, and stay. Undo them by their receipts if you have to.',
  },
  cancellation_pending: {
    title: 'Asked to stop',
    text: 'The request is recorded. The worker stops at the next point where that is safe; a tool that has begun is finished first.',
  },
  already_terminal: {
    title: 'It had ended before',
    text: 'There was nothing left to stop. The original outcome stands.',
  },
}

/** What a connection is doing. */
export const CONNECTION = {
  connecting: 'Connecting',
  live: 'Live',
  retrying: 'Reconnecting',
  offline: 'No network',
  cut: 'Network cut',
  paused: 'Asleep',
  ended: 'Complete',
  closed: 'Closed',
  refused: 'Refused',
}

/** What a second run of a session does while one is active. */
export const POLICIES = {
  parallel: 'runs go side by side',
  queue: 'runs go one after the other',
  reject: 'one run at a time',
  replace: 'a new run replaces the active one',
}

/** What is known of a tool call. */
export const TOOL = {
  requested: 'running',
  completed: 'done',
  failed: 'failed',
  unresolved: 'unknown',
}

/** What was refused, in one sentence. */
export function problemText(error) {
  if (error?.code === 'unreachable') return 'The service cannot be reached. This page keeps trying.'
  return sentence(error?.detail ?? error?.message ?? 'something unexpected went wrong')
}

function sentence(text) {
  const upper = capital(String(text).trim())
  return /[.!?…]$/.test(upper) ? upper : `${upper}.`
}
