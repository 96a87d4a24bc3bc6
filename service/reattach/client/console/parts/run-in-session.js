/**
 * One run within its session's conversation: its messages, and its question while it waits.
 */

import { h, say } from '../dom.js'
import { runPlace } from '../router.js'
import { name } from '../text.js'
import { hasEnded } from '../words.js'
import { conversation } from './message.js'
import { stateTag } from './state.js'
import { waitCard } from './wait.js'

/**
 * `{element, update(run, messages), tick(), dispose()}`.
 *
 * @param {any} first The run, as the session lists it.
 * @param {{run: (id: string) => any}} live The session: the whole run, which has the question, comes over the same connection.
 */
export function runInSession(first, live) {
  const talk = conversation()
  const state = stateTag(first.state)
  const wait = waitCard()
  const quiet = h('p', { class: 'quiet-note' })
  const element = h(
    'section',
    { class: 'session-part', 'aria-label': `Run of ${name(first.agent)}` },
    h('p', { class: 'session-mark' }, h('a', { href: runPlace(first.run_id) }, name(first.agent)), state.element),
    talk.element,
    quiet,
    wait.element,
  )
  let whole = null

  function update(run, messages) {
    state.update(run.state)
    talk.update(messages)
    say(quiet, messages.length === 0 ? silence(run) : '')
    quiet.hidden = quiet.textContent === ''
    if (run.state === 'waiting' && !whole) look(run.run_id)
    if (hasEnded(run.state)) leave()
  }

  function look(runId) {
    whole = live.run(runId)
    const show = () => {
      const { run } = whole?.getSnapshot() ?? {}
      if (run) wait.update(run)
    }
    whole.subscribe(show)
    show()
  }

  function leave() {
    wait.update(null)
    whole?.close()
    whole = null
  }

  return { element, update, tick: wait.tick, dispose: leave }
}

function silence(run) {
  if (run.held) return 'It waits until those before it have ended.'
  if (run.state === 'queued') return 'Waiting for a worker.'
  return hasEnded(run.state) ? 'It ended without saying anything.' : ''
}
