/**
 * The list of sessions: long conversations, each of several runs.
 */

import { listSessions } from '../api.js'
import { h, reconcile, replace, say } from '../dom.js'
import { emptyNote, problemNote } from '../parts/notes.js'
import { sessionRow } from '../parts/session-row.js'
import { Poll } from '../poll.js'
import { many } from '../text.js'
import { everySecond } from '../time.js'

const PAGE = 50
const MOST = 200
/** Where something happened so lately, more is to be expected, milliseconds. */
const RECENT = 30_000

/** @returns {import("../main.js").View} */
export function sessionsView() {
  let limit = PAGE
  const rows = new Map()
  const list = h('ol', { class: 'rows sessions', 'aria-label': 'Sessions' })
  const note = h('div')
  const tally = h('p', { class: 'tally', role: 'status' })
  const more = h(
    'button',
    { type: 'button', class: 'button more', hidden: true, onclick: () => ((limit = Math.min(MOST, limit + PAGE)), poll.now()) },
    'Show more',
  )
  const poll = new Poll(signal => listSessions({ limit }, signal), show, fail)
  const stopTicking = everySecond(() => rows.forEach(row => row.tick()))

  function show({ sessions, next_before: next }) {
    reconcile(
      list,
      rows,
      sessions,
      session => session.session_id,
      sessionRow,
      (row, session) => row.update(session),
    )
    replace(note, sessions.length === 0 && nothing())
    say(tally, sessions.length === 0 ? '' : `${many(sessions.length, 'session')}${next ? ' and more' : ''}`)
    more.hidden = !next || limit >= MOST
    return sessions.some(session => Date.now() - Date.parse(session.last_activity_at) < RECENT)
  }

  function fail(error) {
    replace(
      note,
      problemNote(error, 'The sessions cannot be shown', () => poll.now()),
    )
  }

  const head = h('div', { class: 'head' }, h('h1', { tabindex: -1 }, 'Sessions'), tally)
  const element = h('div', { class: 'page' }, head, note, list, more)
  return { element, title: 'Sessions', nav: 'sessions', dispose: () => (poll.close(), stopTicking()) }
}

function nothing() {
  return emptyNote(
    'No sessions yet',
    'A session is a conversation of several runs. It begins with the first run that carries its name.',
    h('a', { class: 'button primary', href: '#/start?session_id=conversation-1' }, 'Start a run in a new session'),
  )
}
