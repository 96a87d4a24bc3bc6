/**
 * The list of sessions: long conversations, each of several runs, with what goes on in them now.
 */

import { listRuns, listSessions } from '../api.js'
import { h, reconcile, replace, say } from '../dom.js'
import { filterBar } from '../parts/filters.js'
import { emptyNote, problemNote } from '../parts/notes.js'
import { sessionRow } from '../parts/session-row.js'
import { Poll } from '../poll.js'
import { many } from '../text.js'
import { everySecond } from '../time.js'

const PAGE = 50
const MOST = 200
const ACTIVE = ['queued', 'running', 'waiting']
const FILTERS = { label: 'Filter sessions', path: '/sessions', states: ['active', 'waiting'], fields: [{ key: 'name', label: 'Name' }] }

/** @returns {import("../main.js").View} */
export function sessionsView({ query }) {
  let filter = filterOf(query)
  let limit = PAGE
  let found = null
  const rows = new Map()
  const list = h('ol', { class: 'rows sessions', 'aria-label': 'Sessions' })
  const note = h('div')
  const tally = h('p', { class: 'tally', role: 'status' })
  const more = h('button', { type: 'button', class: 'button more', hidden: true, onclick: showMore }, 'Show more')
  const filters = filterBar(FILTERS, filter)
  const poll = new Poll(load, show, fail)
  const stopTicking = everySecond(() => rows.forEach(row => row.tick()))

  // What a session does now is what its runs do: those that have not ended are few, and are asked for with it.
  async function load(signal) {
    const runs = ACTIVE.map(state => listRuns({ state, limit: MOST }, signal))
    const [page, ...pages] = await Promise.all([listSessions({ limit }, signal), ...runs])
    const active = new Map()
    for (const run of pages.flatMap(each => each.runs)) {
      if (run.session_id) active.set(run.session_id, [...(active.get(run.session_id) ?? []), run.state])
    }
    return {
      sessions: page.sessions.map(session => ({ ...session, active: active.get(session.session_id) ?? [] })),
      next: page.next_before,
    }
  }

  function show(answer) {
    found = answer
    draw()
    return found.sessions.some(session => session.active.length > 0)
  }

  function draw() {
    const { sessions, next } = found
    const shown = sessions.filter(session => fits(session, filter))
    reconcile(
      list,
      rows,
      shown,
      session => session.session_id,
      sessionRow,
      (row, session) => row.update(session),
    )
    replace(note, shown.length === 0 && nothing(sessions.length > 0))
    say(tally, shown.length === 0 ? '' : `${many(shown.length, 'session')}${next ? ' and more' : ''}`)
    more.hidden = !next || limit >= MOST
  }

  function fail(error) {
    replace(
      note,
      problemNote(error, 'The sessions cannot be shown', () => poll.now()),
    )
  }

  function showMore() {
    limit = Math.min(MOST, limit + PAGE)
    poll.now()
  }

  function moved(next) {
    if (next.name !== 'sessions') return false
    filter = filterOf(next.query)
    filters.update(filter)
    if (found) draw()
    return true
  }

  const head = h('div', { class: 'head' }, h('h1', { tabindex: -1 }, 'Sessions'), tally)
  const element = h('div', { class: 'page' }, head, filters.element, note, list, more)
  return { element, title: 'Sessions', nav: 'sessions', moved, dispose: () => (poll.close(), stopTicking()) }
}

function filterOf(query) {
  const state = query.get('state') ?? ''
  return { state: FILTERS.states.includes(state) ? state : '', name: query.get('name') ?? '' }
}

function fits(session, { state, name }) {
  const wanted = state === '' || (state === 'active' ? session.active.length > 0 : session.active.includes(state))
  return wanted && session.session_id.toLowerCase().includes(name.toLowerCase())
}

function nothing(filtered) {
  if (filtered) return emptyNote('No such sessions', 'None is like that now.', h('a', { class: 'button', href: '#/sessions' }, 'Show all'))
  return emptyNote(
    'No sessions yet',
    'A session is a conversation of several runs. It begins with the first run that carries its name.',
    h('a', { class: 'button primary', href: '#/start?session_id=conversation-1' }, 'Start a run in a new session'),
  )
}
