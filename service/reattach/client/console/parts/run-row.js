/**
 * One run in a list: a link with what tells runs apart.
 */

import { h, say } from '../dom.js'
import { runPlace } from '../router.js'
import { many, name } from '../text.js'
import { duration, full, since } from '../time.js'
import { hasEnded } from '../words.js'
import { stateTag } from './state.js'

/** `{element, update(run), tick()}`; `tick` is called once a second. */
export function runRow(run) {
  let now = run
  const state = stateTag(run.state)
  const events = h('span', { class: 'cell events' })
  const took = h('span', { class: 'cell took' })
  const created = h('time', { class: 'cell created', datetime: run.created_at, title: full(run.created_at) })
  const link = h('a', { class: 'row-link', href: runPlace(run.run_id) }, h('span', { class: 'row-name' }, name(run.agent)))
  const session = run.session_id
    ? h('span', { class: 'cell session', title: name(run.session_id, 200) }, name(run.session_id))
    : h('span', { class: 'cell session' })
  const element = h(
    'li',
    { class: 'row' },
    h('span', { class: 'cell' }, state.element),
    h('span', { class: 'cell main' }, link, h('span', { class: 'row-id' }, name(run.run_id))),
    session,
    events,
    took,
    created,
  )

  function update(next) {
    if (next.sequence !== now.sequence) flash(element)
    now = next
    state.update(next.state)
    say(events, many(next.sequence, 'event'))
    tick()
  }

  function tick() {
    const end = now.finished_at ? Date.parse(now.finished_at) : Date.now()
    const began = Date.parse(now.started_at ?? now.created_at)
    say(took, now.started_at || hasEnded(now.state) ? duration(Math.max(0, end - began)) : '')
    say(created, since(now.created_at))
  }

  update(run)
  return { element, update, tick }
}

function flash(element) {
  element.classList.remove('changed')
  requestAnimationFrame(() => element.classList.add('changed'))
}
