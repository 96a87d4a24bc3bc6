/**
 * The one place that speaks to the service, all of it through the runtime that every other page may use too.
 */

import { answer, cancel, Http, ReattachError, RunMirror, SessionMirror, start } from '../client/reattach.js'
import { parse } from './exact.js'
import { token } from './token.js'

/** A person waits for what they asked for, but not for ever, milliseconds. */
const PATIENCE = 20_000

const options = { base: new URL('..', import.meta.url).href, token: async () => token() }
const http = new Http(options)
const refusals = new Set()

/** Hear when a credential is asked for. */
export function onUnauthenticated(listener) {
  refusals.add(listener)
  return () => refusals.delete(listener)
}

function refused(error) {
  if (error.status === 401) for (const listener of refusals) listener(error)
}

async function told(promise) {
  try {
    return await promise
  } catch (error) {
    refused(error)
    throw error
  }
}

function list(path, query, signal) {
  const given = Object.fromEntries(Object.entries(query).filter(([, value]) => value))
  return told(http.ask(path, { query: given, signal, patience: 0 }))
}

/** A page of runs: `{runs, next_before}`. */
export function listRuns(query, signal) {
  return list('/agent-runs', query, signal)
}

/** A page of sessions: `{sessions, next_before}`. */
export function listSessions(query, signal) {
  return list('/sessions', query, signal)
}

function eventsPath(runId) {
  return `/agent-runs/${encodeURIComponent(runId)}/events`
}

/** A page of a run's events after a sequence. */
export function eventsPage(runId, after, limit, signal) {
  return told(http.ask(eventsPath(runId), { query: { after, limit }, signal, patience: 0 }))
}

/** One event with every digit of its numbers; null where it is no longer kept. */
export async function exactEvent(runId, sequence, signal) {
  const response = await http.send(eventsPath(runId), {
    query: { after: sequence - 1, limit: 1 },
    headers: { accept: 'application/json' },
    signal,
  })
  if (!response.ok) throw new ReattachError('unexpected', 'this event cannot be read now', { status: response.status })
  const [event] = parse(await response.text()).events
  return event?.sequence === sequence ? event : null
}

/** Start a run; its snapshot. The same key finds the run that it started before. */
export function startRun(request, key) {
  return told(start(request, { ...options, key, patience: PATIENCE }))
}

/** Ask a run to stop; what became of that. */
export function cancelRun(runId, reason, key) {
  return told(cancel(runId, reason ? { reason } : {}, { ...options, key, patience: PATIENCE }))
}

/** Answer a waiting run. */
export function answerRun(runId, waitId, value, key) {
  return told(answer(runId, { wait_id: waitId, value }, { ...options, key, patience: PATIENCE }))
}

/** A key for one intention: however often it is sent, it has one effect. */
export function newKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), byte => byte.toString(16).padStart(2, '0')).join('')
}

/** A live view of one run; `getSnapshot().run` is its snapshot. */
export function followRun(runId) {
  return watched(new RunMirror(runId, options))
}

/** A live view of one session; `getSnapshot().session` is its snapshot. */
export function followSession(sessionId) {
  return watched(new SessionMirror(sessionId, options))
}

function watched(mirror) {
  let seen = null
  mirror.subscribe(() => {
    const { error, connection } = mirror.getSnapshot()
    const now = error ?? connection.error
    if (now && now !== seen) refused(now)
    seen = now
  })
  return mirror
}
