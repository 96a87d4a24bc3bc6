/**
 * The list of runs: newest first, by state, agent and session.
 */

import { listRuns } from '../api.js'
import { h, reconcile, replace, say } from '../dom.js'
import { filterBar } from '../parts/filters.js'
import { emptyNote, problemNote } from '../parts/notes.js'
import { runRow } from '../parts/run-row.js'
import { Poll } from '../poll.js'
import { place } from '../router.js'
import { many, name } from '../text.js'
import { everySecond } from '../time.js'
import { hasEnded, STATES } from '../words.js'

const PAGE = 50
const MOST = 200
/** Requests for one list, at most. */
const LOOKS = 4
const FILTERS = {
  label: 'Filter runs',
  path: '/',
  states: STATES,
  fields: [
    { key: 'agent', label: 'Agent' },
    { key: 'session_id', label: 'Session' },
  ],
}

/** @returns {import("../main.js").View} */
export function runsView({ query }) {
  let filter = filterOf(query)
  let limit = PAGE
  const rows = new Map()
  const list = h('ol', { class: 'rows', 'aria-label': 'Runs' })
  const note = h('div')
  const title = h('h1', { tabindex: -1 }, 'Runs')
  const tally = h('p', { class: 'tally', role: 'status' })
  const more = h('button', { type: 'button', class: 'button more', hidden: true, onclick: showMore }, 'Show more')
  const older = h('a', { class: 'button more', hidden: true }, 'Older runs')
  const filters = filterBar(FILTERS, filter)
  const poll = new Poll(load, show, fail)
  const stopTicking = everySecond(() => rows.forEach(row => row.tick()))

  // The service looks at so many runs for one answer, whatever is asked for: where few match, a page is short and there are more.
  async function load(signal) {
    const found = []
    let next = filter.before
    for (let look = 0; look < LOOKS; look += 1) {
      const page = await listRuns({ ...filter, before: next, limit: limit - found.length }, signal)
      found.push(...page.runs)
      next = page.next_before
      if (!next || found.length >= limit) break
    }
    return { runs: found, next }
  }

  function show({ runs, next }) {
    reconcile(
      list,
      rows,
      runs,
      run => run.run_id,
      runRow,
      (row, run) => row.update(run),
    )
    replace(note, runs.length === 0 && nothing(filter, next))
    say(tally, runs.length === 0 ? '' : `${many(runs.length, 'run')}${next ? ' and more' : ''}`)
    more.hidden = !next || limit >= MOST || runs.length < limit
    older.hidden = !next || !more.hidden
    older.href = place('/', { ...filter, before: next })
    return runs.some(run => !hasEnded(run.state))
  }

  function fail(error) {
    replace(
      note,
      problemNote(error, 'The runs cannot be shown', () => poll.now()),
    )
  }

  function showMore() {
    limit = Math.min(MOST, limit + PAGE)
    poll.now()
  }

  function moved(next) {
    if (next.name !== 'runs') return false
    filter = filterOf(next.query)
    limit = PAGE
    filters.update(filter)
    poll.now()
    return true
  }

  function dispose() {
    poll.close()
    stopTicking()
  }

  const head = h('div', { class: 'head' }, title, tally)
  return {
    element: h('div', { class: 'page' }, head, filters.element, note, list, more, older),
    title: 'Runs',
    nav: 'runs',
    dispose,
    moved,
  }
}

function filterOf(query) {
  const state = query.get('state') ?? ''
  return {
    state: STATES.includes(state) ? state : '',
    agent: (query.get('agent') ?? '').toLowerCase(),
    session_id: query.get('session_id') ?? '',
    before: query.get('before') ?? '',
  }
}

function nothing(filter, next) {
  if (next) return emptyNote('Nothing found so far', 'None of the newest runs is like that. There are older ones.')
  if (filter.state || filter.agent || filter.session_id) {
    const wanted = [filter.state, filter.agent && `agent ${name(filter.agent)}`, filter.session_id && `session ${name(filter.session_id)}`]
    return emptyNote(
      'No such runs',
      `Nothing matches ${wanted.filter(Boolean).join(', ')} now.`,
      h('a', { class: 'button', href: '#/' }, 'Show all runs'),
    )
  }
  return emptyNote(
    'No runs yet',
    'A run is one execution of an agent. It goes on whoever stops watching; all that it does is kept in order, and can be read again.',
    h('a', { class: 'button primary', href: '#/start' }, 'Start the first run'),
  )
}
