/** One run on a page. */
import { Connection } from './connection.js'
import { fold, TERMINAL_STATES, TERMINAL_TYPES } from './fold.js'
import { freeze } from './frozen.js'
import { Http } from './http.js'
import { Mirror } from './mirror.js'

/** What a run is, to a mirror. */
export function runModel(runId) {
  const path = `/agent-runs/${encodeURIComponent(runId)}`
  const at = event => event.sequence
  return {
    name: 'run',
    path,
    fold,
    at,
    adopt: snapshot => snapshot,
    over: run => TERMINAL_STATES.includes(run.state),
    read: frame => freeze(JSON.parse(frame.data)),
    earlier: (http, after, before, signal) => pages(http, `${path}/events`, after, before, signal, at),
  }
}

/** The events between two places that are still kept. */
export async function pages(http, path, after, before, signal, at) {
  const found = []
  let cursor = after
  while (cursor < before - 1) {
    try {
      const page = await http.ask(path, { query: { after: cursor, limit: Math.min(before - 1 - cursor, 1000) }, signal })
      found.push(...page.events.map(freeze))
      if (!page.events.length) break
      cursor = at(page.events.at(-1))
    } catch (error) {
      const earliest = error.problem?.earliest_sequence
      if (error.code !== 'cursor_expired' || !(earliest > cursor + 1)) throw error
      cursor = earliest - 1
    }
  }
  return found
}

/**
 * A run, as a page shows it: `getSnapshot().run` is the server's snapshot, kept current. See `Mirror` for the rest.
 */
export class RunMirror extends Mirror {
  /**
   * @param {string} runId
   * @param {import('./reattach.js').Options} [options]
   */
  constructor(runId, options = {}) {
    const http = new Http(options)
    const model = runModel(runId)
    const isLast = frame => TERMINAL_TYPES.includes(frame.event)
    super(model, http, options, sink => new Connection(`${model.path}/events`, http, { ...options, isLast }, sink))
    this.reload()
  }
}
