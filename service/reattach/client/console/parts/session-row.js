/**
 * One session in a list.
 */

import { h, replace, say } from '../dom.js'
import { sessionPlace } from '../router.js'
import { many, name } from '../text.js'
import { full, since } from '../time.js'
import { POLICIES } from '../words.js'
import { stateTag } from './state.js'

/** What is shown of several runs: the state that a person would want to know of first. */
const FIRST = ['waiting', 'running', 'queued']

/** `{element, update(session), tick()}`. */
export function sessionRow(session) {
  let now = session
  let shown = null
  const policy = h('span', { class: 'cell policy' }, POLICIES[session.policy] ?? name(session.policy, 20))
  const events = h('span', { class: 'cell events' })
  const at = h('time', { class: 'cell created' })
  const link = h(
    'a',
    { class: 'row-link', href: sessionPlace(session.session_id) },
    h('span', { class: 'row-name' }, name(session.session_id)),
  )
  const doing = h('span', { class: 'cell' })
  const element = h(
    'li',
    { class: 'row' },
    doing,
    h('span', { class: 'cell main' }, link, h('span', { class: 'row-id' }, name(session.initiator))),
    policy,
    events,
    at,
  )

  function update(next) {
    now = next
    const state = FIRST.find(each => next.active.includes(each))
    if (state !== shown) replace(doing, state ? stateTag(state).element : h('span', { class: 'faint' }, 'idle'))
    shown = state
    say(events, many(next.sequence, 'event'))
    tick()
  }

  function tick() {
    const text = now.last_activity_at
    at.dateTime = text
    at.title = full(text)
    say(at, since(text))
  }

  update(session)
  return { element, update, tick }
}
