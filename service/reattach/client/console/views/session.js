/**
 * One session, live: the conversation over its runs, what they wait for, and the form that starts the next one.
 */

import { followSession } from '../api.js'
import { h, reconcile, say } from '../dom.js'
import { connectionPanel } from '../parts/connection.js'
import { runInSession } from '../parts/run-in-session.js'
import { stateTag } from '../parts/state.js'
import { startForm } from '../parts/start-form.js'
import { troubles } from '../parts/trouble.js'
import { runPlace } from '../router.js'
import { many, name } from '../text.js'
import { everySecond, full, since } from '../time.js'
import { POLICIES } from '../words.js'

/** @returns {import("../main.js").View} */
export function sessionView({ id }) {
  const live = followSession(id)
  const title = h('h1', { tabindex: -1 }, name(id))
  const meta = h('p', { class: 'meta' })
  const parts = new Map()
  const stream = h('div', { class: 'stream' })
  const older = h('p', { class: 'quiet-note', hidden: true })
  const runs = runsPanel()
  const link = connectionPanel(live)
  const form = startForm({ session: id, fixed: true, started: () => (next.open = false) })
  const next = h('details', { class: 'panel next' }, h('summary', {}, 'Start the next run'), form.element)
  const rail = h('aside', { class: 'rail', 'aria-label': 'About this session' }, link.element, runs.element)
  const content = h('div', { class: 'run', hidden: true }, h('div', { class: 'run-main' }, older, stream, next), rail)
  const trouble = troubles({
    title: 'This session cannot be shown',
    missing: {
      title: 'There is no such session',
      text: `${name(id, 60)} does not exist, is no longer kept, or is not yours to see.`,
      way: h('a', { class: 'button primary', href: '#/sessions' }, 'To the sessions'),
    },
    again: () => live.reload(),
  })
  const element = h(
    'div',
    { class: 'page wide' },
    h('div', { class: 'run-head' }, h('div', { class: 'run-title' }, title), meta),
    trouble.element,
    content,
    link.afloat,
  )
  let session = null
  let frame = 0

  function draw() {
    frame = 0
    const now = live.getSnapshot()
    trouble.update(now, now.session !== null)
    if (!now.session) return
    session = now.session
    content.hidden = false
    const byRun = Map.groupBy(session.messages, message => message.run_id)
    const shown = session.runs.map(run => ({ run, messages: byRun.get(run.run_id) ?? [] }))
    reconcile(
      stream,
      parts,
      shown,
      ({ run }) => run.run_id,
      ({ run }) => runInSession(run, live),
      (part, { run, messages }) => part.update(run, messages),
    )
    const left = session.messages_omitted ?? 0
    older.hidden = !session.next_before && !left
    say(older, `Earlier ${left ? 'messages' : 'runs'} of this session are on the runs' own pages.`)
    runs.update(session.runs)
    link.update(session.sequence, now.connection, now.counters)
    tick()
  }

  function tick() {
    link.tick()
    if (!session) return
    runs.tick()
    parts.forEach(part => part.tick())
    const active = session.active.length
    const words = [
      many(session.runs.length, 'run') + (session.next_before ? ' and more' : ''),
      active ? `${active} active` : '',
      POLICIES[session.policy],
      `last activity ${since(session.last_activity_at)}`,
    ]
    say(meta, words.filter(Boolean).join(' · '))
  }

  const unsubscribe = live.subscribe(() => (frame ||= requestAnimationFrame(draw)))
  const stopTicking = everySecond(tick)
  draw()

  function dispose() {
    unsubscribe()
    stopTicking()
    cancelAnimationFrame(frame)
    parts.forEach(part => part.dispose())
    form.dispose()
    live.close()
  }

  return { element, title: name(id), nav: 'sessions', dispose }
}

function runsPanel() {
  const kept = new Map()
  const list = h('ol', { class: 'session-runs' })
  const element = h(
    'section',
    { class: 'panel', 'aria-labelledby': 'runs-title' },
    h('header', {}, h('h2', { id: 'runs-title' }, 'Runs')),
    list,
  )
  return {
    element,
    update: runs =>
      reconcile(
        list,
        kept,
        runs,
        run => run.run_id,
        item,
        (each, run) => each.update(run),
      ),
    tick: () => kept.forEach(each => each.tick()),
  }
}

function item(run) {
  const state = stateTag(run.state)
  const at = h('time', { datetime: run.created_at, title: run.created_at && full(run.created_at) })
  const element = h('li', {}, h('a', { href: runPlace(run.run_id) }, name(run.agent)), state.element, at)
  return { element, update: now => state.update(now.state), tick: () => run.created_at && say(at, since(run.created_at)) }
}
