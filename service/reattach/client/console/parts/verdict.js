/**
 * The form for a tool call of which nobody knows whether it took effect: somebody looks outside and says what they found.
 */

import { h, say, unique } from '../dom.js'
import { typed } from '../exact.js'
import { clip, name, pretty } from '../text.js'
import { copyable } from './copy.js'

const LONG = 4000

/** `{element, busy(now, says)}`; `send` is called with the verdict. */
export function verdictForm(run, waiting, send) {
  const id = unique('verdict')
  const call = callOf(run, waiting)
  const receipt = h('input', { id: `${id}-receipt`, class: 'mono wide', autocomplete: 'off', spellcheck: 'false' })
  const version = h('input', {
    id: `${id}-version`,
    class: 'mono wide',
    autocomplete: 'off',
    spellcheck: 'false',
    placeholder: 'resource:version',
  })
  const result = h('textarea', { id: `${id}-result`, rows: 3, class: 'mono wide', spellcheck: 'false', 'aria-describedby': `${id}-error` })
  const wrong = h('p', { class: 'error', id: `${id}-error`, 'aria-live': 'polite' })
  const status = h('p', { class: 'help', 'aria-live': 'polite' })
  const done = h(
    'button',
    { type: 'button', class: 'button primary', 'aria-expanded': 'false', 'aria-controls': `${id}-form`, onclick: open },
    'It happened …',
  )
  const not = h(
    'button',
    { type: 'button', class: 'button', onclick: () => send({ happened: false }) },
    'It did not happen: call the tool now',
  )
  const submit = h('button', { class: 'button primary' }, 'It happened: go on with this')
  const form = h(
    'form',
    { class: 'stack', id: `${id}-form`, hidden: true, onsubmit: happened },
    field('Receipt', receipt, 'What the outside calls the effect.'),
    field('Version of the resource after it', version),
    field('Result, as JSON', result, 'What the tool would have returned.'),
    wrong,
    h('div', { class: 'actions' }, submit),
  )

  function open() {
    form.hidden = !form.hidden
    done.setAttribute('aria-expanded', String(!form.hidden))
    if (!form.hidden) receipt.focus()
  }

  function happened(event) {
    event.preventDefault()
    const verdict = { happened: true }
    if (receipt.value.trim()) verdict.receipt_id = receipt.value.trim()
    if (version.value.trim()) verdict.result_version = version.value.trim()
    if (result.value.trim()) {
      const read = typed(result.value)
      say(wrong, read.error ?? '')
      if (read.error) return result.focus()
      verdict.result = read.value
    }
    send(verdict)
  }

  function busy(now, says = '') {
    for (const button of [done, not, submit]) button.disabled = now
    say(status, says)
  }

  const text = 'The call began, and no answer of it was recorded. Nobody repeats it until somebody has looked where it would have happened.'
  const element = h(
    'div',
    { class: 'stack' },
    h('p', {}, text),
    call && callFacts(run, call),
    h('div', { class: 'actions' }, done, not),
    form,
    status,
  )
  return { element, busy }
}

function field(label, input, help) {
  return [
    h('label', { for: input.id }, label, ' ', h('span', { class: 'optional' }, 'optional')),
    input,
    help && h('p', { class: 'help' }, help),
  ]
}

/** The call that the wait is about. Its id is in the wait's, unless it is long: then the prompt names it. */
function callOf(run, waiting) {
  const unresolved = run.tools.filter(tool => tool.status === 'unresolved')
  const named = unresolved.filter(
    tool =>
      waiting.wait_id.startsWith(`resolve_${tool.tool_call_id}.`) || (waiting.prompt ?? '').includes(`(tool call ${tool.tool_call_id})`),
  )
  return named[0] ?? (unresolved.length === 1 ? unresolved[0] : undefined)
}

function callFacts(run, call) {
  return h(
    'dl',
    { class: 'facts framed' },
    h('div', {}, h('dt', {}, 'tool'), h('dd', { class: 'mono' }, name(call.tool))),
    h('div', {}, h('dt', {}, 'idempotency key'), h('dd', {}, copyable(`${run.run_id}:${call.tool_call_id}`, 'idempotency key'))),
    call.arguments !== undefined &&
      h(
        'div',
        {},
        h('dt', {}, 'arguments'),
        h('dd', {}, h('pre', { class: 'data', tabindex: 0, 'aria-label': 'Arguments' }, clip(pretty(call.arguments), LONG))),
      ),
    call.why && h('div', {}, h('dt', {}, 'why'), h('dd', {}, name(call.why, 400))),
  )
}
