/**
 * Stopping a run, and saying truthfully what came of it.
 */

import { announce } from '../announce.js'
import { cancelRun, newKey } from '../api.js'
import { h, replace } from '../dom.js'
import { name } from '../text.js'
import { DISPOSITIONS, hasEnded } from '../words.js'
import { copyable } from './copy.js'
import { problemNote } from './notes.js'

/**
 * The button, its question, and the answer: `{button, dialog, notice, update(run)}`.
 */
export function stopping() {
  const notice = h('div')
  const reason = h('input', { id: 'stop-reason', maxlength: 1000, class: 'wide', autocomplete: 'off' })
  const go = h('button', { class: 'button danger' }, 'Stop the run')
  const back = h('button', { type: 'button', class: 'button', onclick: () => dialog.close() }, 'Let it go on')
  const refused = h('div')
  const dialog = h(
    'dialog',
    { class: 'dialog', 'aria-labelledby': 'stop-title' },
    h(
      'form',
      { class: 'stack', onsubmit: stop },
      h('h2', { id: 'stop-title' }, 'Stop this run?'),
      h(
        'p',
        {},
        'It stops at the next point where that is safe. What it has changed by then stays, and is listed. Closing the page stops nothing.',
      ),
      h('label', { for: 'stop-reason' }, 'Why ', h('span', { class: 'optional' }, 'optional, kept in the log')),
      reason,
      refused,
      h('div', { class: 'actions' }, go, back),
    ),
  )
  const button = h('button', { type: 'button', class: 'button danger-quiet', hidden: true, onclick: ask }, 'Stop …')
  let run = null
  let answered = null
  let key = newKey()

  function ask() {
    replace(refused)
    dialog.showModal()
  }

  async function stop(event) {
    event.preventDefault()
    go.disabled = true
    replace(refused)
    try {
      const answer = await cancelRun(run.run_id, reason.value.trim(), key)
      answered = answer
      dialog.close()
      show(answer.disposition, answer)
      announce(DISPOSITIONS[answer.disposition]?.title ?? answer.disposition)
      notice.firstElementChild?.focus({ preventScroll: true })
    } catch (error) {
      replace(refused, problemNote(error, 'The request did not arrive'))
      // Another reason is another request; the same one may be sent again.
      if (error.code === 'idempotency_key_reused') key = newKey()
    } finally {
      go.disabled = false
    }
  }

  function update(next) {
    run = next
    const ended = hasEnded(run.state)
    button.hidden = ended
    const asked = run.cancel.version > 0
    // The request has arrived, this one or another's: what becomes of it is shown on the page.
    if (dialog.open && (ended || (asked && go.disabled))) dialog.close()
    const disposition = asked ? run.cancel.disposition : null
    // The answer given here stands until the run itself says more.
    if (answered?.disposition === 'already_terminal' && !asked) return
    show(disposition, run)
  }

  let shown = ''

  function show(disposition, facts) {
    const receipts = disposition === 'cancelled_after_effect' ? effects(facts) : []
    const looks = `${disposition}/${receipts.length}`
    if (looks === shown) return
    shown = looks
    const words = DISPOSITIONS[disposition]
    replace(
      notice,
      words &&
        h(
          'section',
          { class: 'note outcome', 'data-disposition': disposition, tabindex: -1 },
          h('h2', {}, words.title),
          h('p', {}, words.text),
          said(facts),
          receipts.length > 0 && h('ul', { class: 'receipts' }, receipts),
        ),
    )
  }

  return { button, dialog, notice, update }
}

function said({ cancel }) {
  return cancel?.reason && h('p', { class: 'faint' }, `${name(cancel.by ?? 'somebody')} said: ${name(cancel.reason, 1000)}`)
}

function effects(facts) {
  const receipts = facts.receipts ?? facts.tools.filter(tool => tool.status === 'completed' && (tool.receipt_id || tool.result_version))
  return receipts.map(tool =>
    h(
      'li',
      {},
      h('span', { class: 'mono' }, name(tool.tool)),
      tool.receipt_id && copyable(tool.receipt_id, 'receipt'),
      tool.result_version && copyable(tool.result_version, 'version'),
    ),
  )
}
