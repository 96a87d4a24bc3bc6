/**
 * What a run waits for, and the form that answers it. A call that nobody knows the fate of has a form of its own.
 */

import { announce } from '../announce.js'
import { answerRun, newKey } from '../api.js'
import { h, replace, say, unique } from '../dom.js'
import { typed } from '../exact.js'
import { name, visible } from '../text.js'
import { countdown, full, since } from '../time.js'
import { problemNote } from './notes.js'
import { verdictForm } from './verdict.js'

const UNRESOLVED = 'effect_unresolved'

/** `{element, update(run), tick()}`; empty while the run waits for nothing, or without one. */
export function waitCard() {
  const element = h('div')
  let shown = null

  function update(run) {
    const waiting = run?.state === 'waiting' ? run.waiting : null
    if (waiting?.wait_id === shown?.waiting.wait_id && !waiting === !shown) return
    const had = element.contains(document.activeElement)
    shown = waiting && card(run, waiting)
    replace(element, shown?.element)
    if (waiting) announce(`The run waits: ${name(waiting.prompt ?? waiting.reason, 200)}`)
    // The form that had the focus is gone, since the answer was given, here or elsewhere.
    else if (had) document.querySelector('#main h1')?.focus()
  }

  return { element, update, tick: () => shown?.tick() }
}

function card(run, waiting) {
  const id = unique('wait')
  const left = h('span', { class: 'left' })
  const asked = h('time', { datetime: waiting.since, title: full(waiting.since) }, since(waiting.since))
  const refused = h('div')
  const unresolved = waiting.reason === UNRESOLVED
  const title = visible(waiting.prompt || `An answer is needed: ${waiting.reason}`)
  const asking = unresolved ? verdictForm(run, waiting, send) : approvalForm(send)
  const meta = h(
    'p',
    { class: 'wait-meta' },
    h('span', {}, unresolved ? 'a person has to look' : name(waiting.reason)),
    h('span', {}, 'asked ', asked),
    left,
  )
  const element = h(
    'section',
    { class: 'wait', 'aria-labelledby': id, tabindex: -1 },
    meta,
    h('h2', { id, dir: 'auto' }, title),
    asking.element,
    refused,
  )
  /** One for each answer that somebody tried: the same one again is the same request. */
  const keys = new Map()

  async function send(value) {
    const text = JSON.stringify(value)
    if (!keys.has(text)) keys.set(text, newKey())
    // A button that is disabled drops the focus; it stays in the card.
    element.focus()
    asking.busy(true)
    replace(refused)
    try {
      await answerRun(run.run_id, waiting.wait_id, value, keys.get(text))
      asking.busy(true, 'Answered. The run goes on …')
      announce('Your answer has reached the run.')
    } catch (error) {
      asking.busy(false)
      const late = error.code === 'wait_not_open'
      replace(
        refused,
        late
          ? problemNote(
              { detail: 'Somebody else answered, or its time is over. This page shows what happened.' },
              'This question is closed',
            )
          : problemNote(error, 'Your answer did not arrive'),
      )
    }
  }

  function tick() {
    if (!waiting.expires_at) return
    const ms = Date.parse(waiting.expires_at) - Date.now()
    say(left, ms > 0 ? `${countdown(ms)} left` : 'its time is over')
    left.classList.toggle('soon', ms < 60_000)
  }

  tick()
  return { element, waiting, tick }
}

/** Yes, no, or any JSON value. */
function approvalForm(send) {
  const id = unique('answer')
  const yes = h('button', { type: 'button', class: 'button primary', onclick: () => send(true) }, 'Yes')
  const no = h('button', { type: 'button', class: 'button', onclick: () => send(false) }, 'No')
  const text = h('textarea', { id, rows: 3, class: 'mono wide', spellcheck: 'false', 'aria-describedby': `${id}-error` })
  const wrong = h('p', { class: 'error', id: `${id}-error`, 'aria-live': 'polite' })
  const status = h('p', { class: 'help', 'aria-live': 'polite' })
  const other = h(
    'button',
    { type: 'button', class: 'button quiet', 'aria-expanded': 'false', 'aria-controls': `${id}-form`, onclick: toggle },
    'Another answer',
  )
  const submit = h('button', { class: 'button primary' }, 'Send')
  const form = h(
    'form',
    { class: 'stack', id: `${id}-form`, hidden: true, onsubmit: free },
    h('label', { for: id }, 'Your answer, as JSON'),
    text,
    wrong,
    h('div', { class: 'actions' }, submit),
  )

  function toggle() {
    form.hidden = !form.hidden
    other.setAttribute('aria-expanded', String(!form.hidden))
    if (!form.hidden) text.focus()
  }

  function free(event) {
    event.preventDefault()
    const read = typed(text.value)
    say(wrong, read.error ?? '')
    if (read.error) text.focus()
    else send(read.value)
  }

  function busy(now, says = '') {
    for (const button of [yes, no, other, submit]) button.disabled = now
    say(status, says)
  }

  return { element: h('div', { class: 'stack' }, h('div', { class: 'actions' }, yes, no, other), form, status), busy }
}
