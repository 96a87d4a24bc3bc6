/**
 * How a run ended: its outcome, or its error in words.
 */

import { h, replace } from '../dom.js'
import { clip, name, pretty, visible } from '../text.js'

const LONG = 40_000
const CODES = {
  worker_lost: 'Worker after worker died on it, until its attempts ran out.',
  wait_expired: 'Nobody answered in time.',
  effect_unresolved: 'Nobody knows whether one of its tools took effect.',
  nondeterminism: 'The handler asked for something else at the same place than before; the agent was changed while this run was under way.',
}

/** `{element, update(run)}`; empty while the run lives. */
export function outcomeCard() {
  const element = h('div')
  let shown = null

  function update(run) {
    if (!run.finished_at || shown === run.state) return
    shown = run.state
    if (run.state === 'succeeded') replace(element, outcome(run.outcome, textsOf(run.messages)))
    else if (run.state === 'failed') replace(element, failure(run.error))
  }

  return { element, update }
}

/** What was said, so that an outcome that repeats it is not shown twice. */
function textsOf(messages) {
  const parts = messages.flatMap(message => (Array.isArray(message.content) ? message.content : []))
  return new Set(parts.map(part => part?.text).filter(text => typeof text === 'string' && text.length > 80))
}

function outcome(value, said) {
  if (value === null || value === undefined) return null
  return h(
    'section',
    { class: 'outcome-card', 'aria-labelledby': 'outcome-title' },
    h('h2', { id: 'outcome-title' }, 'Outcome'),
    facts(value, said) ?? h('pre', { class: 'data', tabindex: 0, 'aria-label': 'Outcome' }, clip(pretty(value), LONG)),
  )
}

/** A flat object reads better as a list than as JSON. */
function facts(value, said) {
  const entries = typeof value === 'object' && !Array.isArray(value) ? Object.entries(value) : []
  if (entries.length === 0 || entries.length > 12 || entries.some(([, each]) => typeof each === 'object' && each !== null)) return null
  return h(
    'dl',
    { class: 'facts' },
    entries.map(([key, each]) =>
      h(
        'div',
        {},
        h('dt', {}, name(key, 60)),
        said.has(each) ? h('dd', { class: 'faint' }, 'the message above') : h('dd', { dir: 'auto' }, clip(visible(String(each)), LONG)),
      ),
    ),
  )
}

function failure(error) {
  const code = error?.code
  return h(
    'section',
    { class: 'note problem', 'aria-labelledby': 'outcome-title' },
    h('h2', { id: 'outcome-title' }, 'The run failed'),
    h('p', { dir: 'auto' }, clip(visible(error?.message ?? 'It gave no reason.'), LONG)),
    CODES[code] && h('p', {}, CODES[code]),
    code && h('p', {}, h('code', { class: 'code' }, name(code))),
  )
}
