/**
 * The head of a run's page: which run it is, how it stands, and the button that stops it.
 */

import { h, replace, say } from '../dom.js'
import { sessionPlace } from '../router.js'
import { many, name } from '../text.js'
import { duration } from '../time.js'
import { hasEnded } from '../words.js'
import { copyable } from './copy.js'
import { stateTag } from './state.js'

/**
 * `{element, update(run), tick(run)}`.
 *
 * @param {HTMLElement} button Stops the run.
 */
export function runHead(button) {
  const title = h('h1', { tabindex: -1 }, 'Run')
  const state = stateTag('queued')
  const words = h('span')
  const meta = h('p', { class: 'meta' })
  const row = h('div', { class: 'run-title' }, title, state.element, h('span', { class: 'grow' }), button)
  const element = h('div', { class: 'run-head' }, row, meta)
  state.element.hidden = true

  function update(run) {
    state.element.hidden = false
    state.update(run.state)
    say(title, name(run.agent))
    if (!meta.firstChild) {
      const session = run.session_id && h('a', { href: sessionPlace(run.session_id) }, 'session ', name(run.session_id, 60))
      replace(meta, copyable(run.run_id, 'run id'), words, session)
    }
    tick(run)
  }

  function tick(run) {
    const attempt = run.attempt > 1 ? `attempt ${run.attempt}` : ''
    say(words, [took(run), attempt, many(run.sequence, 'event')].filter(Boolean).join(' · '))
  }

  return { element, update, tick }
}

function took(run) {
  if (!run.started_at) return 'not started'
  const end = run.finished_at ? Date.parse(run.finished_at) : Date.now()
  return `${hasEnded(run.state) ? 'took' : 'for'} ${duration(Math.max(0, end - Date.parse(run.started_at)))}`
}
