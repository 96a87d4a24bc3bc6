/**
 * The fold: a run at one sequence is what its events 1 … that sequence say. The same rules as the server's, bound to the same vectors.
 *
 * A snapshot is all the state there is, so whoever has one goes on from it. Snapshots are frozen and share what did not change: an item
 * that is the same object as before is the same.
 */
import { freeze, put } from './frozen.js'
import * as messages from './messages.js'
import * as tools from './tools.js'

const NOBODY_ASKED = freeze({ version: 0, requested_at: null, by: null, reason: null, disposition: null })
const DISPOSITIONS = new Set(['cancelled_before_effect', 'cancelled_after_effect', 'cancellation_pending', 'already_terminal'])

/** Types after which a run has no more events. */
export const TERMINAL_TYPES = Object.freeze(['run.succeeded', 'run.failed', 'run.cancelled'])
/** States that a run never leaves. */
export const TERMINAL_STATES = Object.freeze(['succeeded', 'failed', 'cancelled'])

const string = value => typeof value === 'string'
const integer = value => Number.isSafeInteger(value)

/** The payload if the members named here have these types or are missing or null, else an empty one: the type alone decides the state. */
function always(payload, members) {
  const fits = isObject(payload) && Object.entries(members).every(([name, is]) => payload[name] == null || is(payload[name]))
  return fits ? payload : {}
}

function isObject(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function started(run, { payload, occurred_at }) {
  const { attempt } = always(payload, { attempt: integer })
  return { state: 'running', waiting: null, attempt: attempt ?? run.attempt, started_at: run.started_at ?? occurred_at }
}

function retrying(run, { payload }) {
  const { attempt } = always(payload, { attempt: integer })
  return { state: 'queued', waiting: null, attempt: attempt ?? run.attempt, messages: messages.interrupt(run.messages) }
}

function waiting(run, { payload, occurred_at }) {
  const p = always(payload, { reason: string, wait_id: string, expires_at: string, prompt: string })
  const about = { reason: p.reason ?? '', wait_id: p.wait_id ?? '', since: occurred_at }
  return { state: 'waiting', waiting: freeze({ ...about, expires_at: p.expires_at ?? null, prompt: p.prompt ?? null }) }
}

function cancelRequested(run, { payload, occurred_at }) {
  const p = always(payload, { cancel_version: integer, by: string, reason: string })
  const about = { version: p.cancel_version ?? 1, requested_at: occurred_at, by: p.by ?? null, reason: p.reason ?? null }
  return { cancel: freeze({ ...about, disposition: 'cancellation_pending' }) }
}

function ended(state, member) {
  return (run, { payload, occurred_at }, retention) => {
    const p = always(payload, { disposition: value => DISPOSITIONS.has(value) })
    const late = run.cancel.version ? 'already_terminal' : null
    const disposition = state === 'cancelled' ? (p.disposition ?? null) : late
    return {
      state,
      waiting: null,
      finished_at: occurred_at,
      events_expire_at: later(occurred_at, retention?.events_ms),
      expires_at: later(occurred_at, retention?.run_ms),
      cancel: put(run.cancel, { disposition }),
      messages: messages.interrupt(run.messages),
      ...(member && { [member]: freeze(p[member] ?? null) }),
    }
  }
}

function later(at, ms) {
  return ms === undefined ? null : new Date(Date.parse(at) + ms).toISOString()
}

const message = change => (run, { payload }) => ({ messages: change(run.messages, payload) })
const settled = status => (run, event) => tools.settle(run, event, status)

const RULES = new Map(Object.entries({
  'run.created': (run, { occurred_at }) => ({ created_at: occurred_at }),
  'run.started': started,
  'run.resumed': started,
  'run.retrying': retrying,
  'run.waiting': waiting,
  'input.received': () => ({ state: 'queued', waiting: null }),
  'run.cancel_requested': cancelRequested,
  'run.succeeded': ended('succeeded', 'outcome'),
  'run.failed': ended('failed', 'error'),
  'run.cancelled': ended('cancelled', null),
  'message.started': message(messages.start),
  'message.delta': message(messages.write),
  'message.checkpoint': message(messages.checkpoint),
  'message.completed': message(messages.complete),
  'tool.requested': tools.request,
  'tool.completed': settled('completed'),
  'tool.failed': settled('failed'),
  'tool.unresolved': settled('unresolved'),
}))

/**
 * The snapshot before the first event.
 *
 * @param {object} run What no event changes: `run_id`, `agent`, `input` …
 */
export function begin(run) {
  const { retention, ...constants } = run
  return freeze({
    ...constants,
    state: 'queued', attempt: 0, sequence: 0, waiting: null, outcome: null, error: null,
    created_at: null, started_at: null, last_activity_at: null, finished_at: null, events_expire_at: null, expires_at: null,
    messages: [], tools: [], resources: {}, unresolved: [], cancel: NOBODY_ASKED,
  })
}

/**
 * Fold events onto a snapshot; the given one is left as it is. A type that is not projected, and a payload that does not fit its type,
 * change nothing but `sequence` and `last_activity_at`.
 *
 * @param {object} snapshot From `begin`, from the server, or from here.
 * @param {Iterable<object>} events In order, as clients receive them. Sequences may be left out where the server leaves them out.
 * @param {{ events_ms: number, run_ms: number }} [retention] Without it nothing is known of when an ended run goes: both times stay null.
 * @throws {RangeError} An event's sequence is not above the last one.
 */
export function fold(snapshot, events, retention) {
  let run = snapshot
  for (const event of events) {
    if (!(event.sequence > run.sequence)) throw new RangeError(`event ${event.sequence} cannot be folded after ${run.sequence}`)
    const change = RULES.get(event.type)?.(run, event, retention)
    run = put(run, { ...change, sequence: event.sequence, last_activity_at: event.occurred_at })
  }
  return run
}
