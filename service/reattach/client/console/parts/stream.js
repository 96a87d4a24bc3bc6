/**
 * What a run says, from its first message to its outcome, kept in sight while it grows.
 */

import { h, say } from '../dom.js'
import { hasEnded } from '../words.js'
import { conversation } from './message.js'
import { outcomeCard } from './outcome.js'

const COMMAND = 'reattach work MODULE:AGENTS'

/** `{element, update(run)}`. */
export function runStream() {
  const talk = conversation()
  const outcome = outcomeCard()
  const quiet = h('p', { class: 'quiet-note' })
  const hint = h(
    'p',
    { class: 'quiet-note' },
    'Where none takes it, start one that knows this agent: ',
    h('code', { class: 'code' }, COMMAND),
  )
  const element = h('div', { class: 'stream' }, talk.element, quiet, hint, outcome.element)

  function update(run) {
    const sticky = atEnd(element)
    talk.update(run.messages)
    outcome.update(run)
    say(quiet, silence(run))
    quiet.hidden = quiet.textContent === ''
    hint.hidden = run.state !== 'queued' || run.attempt > 0
    if (sticky && !hasEnded(run.state)) toEnd(element)
  }

  return { element, update }
}

function silence(run) {
  if (run.messages.length > 0 || run.state === 'waiting') return ''
  if (run.state === 'queued') return 'Waiting for a worker.'
  return hasEnded(run.state) ? 'It ended without saying anything.' : 'It has not said anything yet.'
}

/** Whether the end of what is said is in sight, so that it is to stay there. */
function atEnd(said) {
  const { bottom, height } = said.getBoundingClientRect()
  return height > 0 && bottom <= innerHeight + 40 && bottom > innerHeight * 0.4
}

function toEnd(said) {
  const over = said.getBoundingClientRect().bottom - innerHeight + 32
  if (over > 0) scrollBy(0, over)
}
