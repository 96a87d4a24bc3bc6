/** A session on a page: all its runs over one connection. */
import { Connection } from './connection.js'
import { begin, fold, TERMINAL_TYPES } from './fold.js'
import { freeze, put } from './frozen.js'
import { Http } from './http.js'
import { Mirror } from './mirror.js'
import { pages, runModel } from './run.js'

/** What of a run is in a session's list of runs, where an event can change it. */
const LISTED = ['state', 'attempt', 'sequence', 'started_at', 'last_activity_at', 'finished_at', 'waiting', 'cancel', 'outcome', 'error']

/** The runs behind a session's snapshot, as far as its list and its messages tell of them. */
const inner = new WeakMap()
const tagged = new WeakMap()
const events = new WeakMap()

function runsOf(session) {
  let runs = inner.get(session)
  if (!runs) {
    runs = new Map(session.runs.map(run => [run.run_id, { ...begin(run), ...run, messages: [] }]))
    for (const message of session.messages) {
      const { run_id, ...own } = message
      tagged.set(freeze(own), message)
      runs.get(run_id)?.messages.push(own)
    }
    inner.set(session, runs)
  }
  return runs
}

function withRun(run_id, message) {
  if (!tagged.has(message)) tagged.set(message, freeze({ run_id, ...message }))
  return tagged.get(message)
}

/** A run that a session had not heard of, from its first event. */
function fresh({ run_id, release_id, resource_scope, payload }) {
  return begin({ run_id, agent: payload.agent ?? null, initiator: payload.initiator ?? null, release_id, resource_scope })
}

function summary(before, run) {
  const { input, metadata, messages, tools, resources, unresolved, events_expire_at, expires_at, ...facts } = run
  if (!before) return freeze(facts)
  return put(before, Object.fromEntries(LISTED.filter(name => name in before).map(name => [name, run[name]])))
}

/**
 * Fold a session's events onto its snapshot: its list of runs, which of them are active, and its messages. Events carry the session's
 * own sequence as `session_sequence`. A run joins the list when it is created; of those that are not in it, on an older page or not for
 * these eyes, only their end is noted.
 */
export function foldSession(session, batch) {
  const runs = new Map(runsOf(session))
  const active = new Set(session.active)
  const changed = new Set()
  let { sequence, last_activity_at } = session
  for (const event of batch) {
    const { run_id, type } = event
    const run = runs.get(run_id) ?? (type === 'run.created' && !event.payload.redacted ? fresh(event) : undefined)
    // The list was read a moment after the snapshot's sequence, and may know of this one already.
    if (run && event.sequence > run.sequence) runs.set(run_id, fold(run, [event]))
    if (run) changed.add(run_id)
    if (type === 'run.created') active.add(run_id)
    if (TERMINAL_TYPES.includes(type)) active.delete(run_id)
    sequence = event.session_sequence
    last_activity_at = event.occurred_at
  }
  const next = put(session, {
    sequence,
    last_activity_at,
    ...(changed.size && listed(session, runs, changed)),
    ...(active.size !== session.active.length && { active: freeze([...active]) }),
  })
  inner.set(next, runs)
  return next
}

function listed(session, runs, changed) {
  const known = new Set(session.runs.map(run => run.run_id))
  const old = session.runs.map(run => (changed.has(run.run_id) ? summary(run, runs.get(run.run_id)) : run))
  const added = [...changed].filter(id => !known.has(id)).map(id => summary(null, runs.get(id)))
  const all = [...old, ...added]
  const messages = all.flatMap(({ run_id }) => runs.get(run_id).messages.map(message => withRun(run_id, message)))
  return { runs: Object.freeze(all), messages: same(session.messages, messages) }
}

function same(before, now) {
  return before.length === now.length && before.every((item, at) => item === now[at]) ? before : Object.freeze(now)
}

function read(frame) {
  if (!events.has(frame)) {
    const session_sequence = Number(frame.id.slice(frame.id.lastIndexOf(':') + 1))
    events.set(frame, freeze({ ...JSON.parse(frame.data), session_sequence }))
  }
  return events.get(frame)
}

function sessionModel(sessionId) {
  const path = `/sessions/${encodeURIComponent(sessionId)}`
  const at = event => event.session_sequence
  return {
    name: 'session',
    path,
    fold: foldSession,
    at,
    adopt: snapshot => snapshot,
    over: () => false,
    lacks: session => session.runs.some(run => run.links === undefined),
    read,
    earlier: (http, after, before, signal) => pages(http, `${path}/events`, after, before, signal, at),
  }
}

/** A session: `getSnapshot().session` is the server's snapshot, kept current; `run(id)` is one of its runs over the same connection. */
export class SessionMirror extends Mirror {
  #http
  #options
  #branches = new Set()

  /**
   * @param {string} sessionId
   * @param {import('./reattach.js').Options} [options]
   */
  constructor(sessionId, options = {}) {
    const http = new Http(options)
    const model = sessionModel(sessionId)
    let branches
    super(model, http, options, sink => {
      const forked = { ...sink, frames: frames => (branches?.forEach(branch => branch.frames(frames)), sink.frames(frames)) }
      return new Connection(`${model.path}/events`, http, options, forked)
    })
    branches = this.#branches
    this.#http = http
    this.#options = options
    this.subscribe(() => this.#spread())
    this.reload()
  }

  /** A run of this session, with everything a run has, over the session's connection. Close it when it is looked at no more. */
  run(runId) {
    return new BranchMirror(runId, this.#http, this.#options, sink => new Branch(runId, sink, this, this.#branches))
  }

  close() {
    for (const branch of [...this.#branches]) branch.close()
    super.close()
  }

  #spread() {
    const { session, connection } = this.getSnapshot()
    for (const branch of [...this.#branches]) {
      branch.follow(connection, session?.runs.find(run => run.run_id === branch.runId)?.sequence ?? 0)
    }
  }
}

class BranchMirror extends Mirror {
  constructor(runId, http, options, connect) {
    super(runModel(runId), http, options, connect)
    this.reload()
  }
}

/** A session's connection, as one of its runs sees it. */
class Branch {
  #sink
  #session
  #branches
  #over = false

  constructor(runId, sink, session, branches) {
    this.runId = runId
    this.#sink = sink
    this.#session = session
    this.#branches = branches
    this.status = session.getSnapshot().connection
  }

  open() {
    if (!this.#over) this.#branches.add(this)
  }

  nudge() {
    this.#session.nudge()
  }

  cut(ms) {
    this.#session.cut(ms)
  }

  close(state = 'closed', error = null) {
    this.#over = state === 'ended'
    this.#branches.delete(this)
    this.#tell({ ...this.#session.getSnapshot().connection, state, reason: null, retryAt: null, error: error?.told ?? null })
  }

  frames(frames) {
    const own = frames.map(frame => ({ frame, event: read(frame) })).filter(({ event }) => event.run_id === this.runId)
    if (own.length) this.#sink.frames(own.map(({ frame, event }) => ({ ...frame, id: event.event_id })))
  }

  follow(status, sequence) {
    if (status !== this.status) this.#tell(status)
    this.#sink.behind(sequence)
  }

  #tell(status) {
    this.status = Object.freeze(status)
    this.#sink.status(this.status)
  }
}
