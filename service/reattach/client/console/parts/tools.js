/**
 * The tools a run has called, in order: how long each took, within the life of the run, and what it left behind.
 */

import { h, reconcile, replace, say } from '../dom.js'
import { clip, many, name, pretty } from '../text.js'
import { clock, duration } from '../time.js'
import { TOOL } from '../words.js'
import { copyable } from './copy.js'

const LATEST = 50
const LONG = 20_000

/** `{element, update(run), tick(run)}`. */
export function toolTimeline() {
  const kept = new Map()
  const list = h('ol', { class: 'tools' })
  const none = h('p', { class: 'faint' }, 'No tool has been called.')
  const tally = h('span', { class: 'tally' })
  const earlier = h('button', { type: 'button', class: 'button more small', hidden: true, onclick: () => ((most += LATEST), update(last)) })
  const element = h(
    'section',
    { class: 'panel', 'aria-labelledby': 'tools-title' },
    h('header', {}, h('h2', { id: 'tools-title' }, 'Tools'), tally),
    none,
    earlier,
    list,
  )
  let most = LATEST
  let last = { tools: [] }

  function update(run) {
    last = run
    const hidden = Math.max(0, run.tools.length - most)
    none.hidden = run.tools.length > 0
    earlier.hidden = hidden === 0
    say(earlier, `Show ${many(Math.min(hidden, LATEST), 'earlier call')}`)
    say(tally, run.tools.length ? many(run.tools.length, 'call') : '')
    reconcile(
      list,
      kept,
      run.tools.slice(hidden),
      tool => tool.tool_call_id,
      toolItem,
      (item, tool) => item.update(tool),
    )
    tick(run)
  }

  function tick(run) {
    const from = Date.parse(run.started_at ?? run.created_at)
    const to = run.finished_at ? Date.parse(run.finished_at) : Math.max(Date.now(), Date.parse(run.last_activity_at))
    for (const item of kept.values()) item.place(from, Math.max(to, from + 1))
  }

  return { element, update, tick }
}

function toolItem(first) {
  const title = h('span', { class: 'tool-name' }, name(first.tool))
  const word = h('span', { class: 'tool-status' })
  const took = h('span', { class: 'tool-took' })
  const bar = h('span', { class: 'bar' })
  const marks = h('dl', { class: 'marks' })
  const more = h('details', {}, h('summary', {}, 'Details'), h('div', { class: 'stack-small' }))
  const element = h(
    'li',
    { class: 'tool' },
    h('div', { class: 'tool-head' }, title, took),
    h('span', { class: 'track', 'aria-hidden': 'true' }, bar),
    word,
    marks,
    more,
  )
  let shown = null
  more.addEventListener('toggle', () => more.open && details(more.lastElementChild, shown))

  function update(tool) {
    if (tool === shown) return
    shown = tool
    element.dataset.status = tool.status
    say(
      word,
      tool.status === 'unresolved'
        ? 'nobody knows whether it took effect'
        : tool.status === 'failed'
          ? `failed: ${reason(tool.error)}`
          : '',
    )
    word.hidden = word.textContent === ''
    replace(marks, mark('receipt', tool.receipt_id), mark('version', tool.result_version))
    if (more.open) details(more.lastElementChild, tool)
  }

  function place(from, to) {
    const began = Date.parse(shown.requested_at ?? shown.finished_at ?? '') || from
    const ended = shown.finished_at ? Date.parse(shown.finished_at) : shown.status === 'requested' ? to : began
    const share = at => Math.min(1, Math.max(0, (at - from) / (to - from)))
    bar.style.setProperty('--from', share(began))
    bar.style.setProperty('--to', share(ended))
    say(
      took,
      shown.status === 'requested'
        ? `${TOOL.requested} ${duration(Math.max(0, to - began))}`
        : shown.requested_at && shown.finished_at
          ? duration(ended - began)
          : (TOOL[shown.status] ?? name(shown.status, 20)),
    )
  }

  update(first)
  return { element, update, place }
}

function mark(label, value) {
  return value && h('div', {}, h('dt', {}, label), h('dd', {}, copyable(value, label)))
}

function reason(error) {
  return clip(name(typeof error === 'string' ? error : (error?.message ?? error?.code ?? 'no reason given'), 400), 300)
}

function details(box, tool) {
  replace(
    box,
    h(
      'dl',
      { class: 'facts' },
      fact('call', tool.tool_call_id),
      fact('asked', tool.requested_at && clock(tool.requested_at)),
      fact('settled', tool.finished_at && clock(tool.finished_at)),
      fact('why', tool.why),
    ),
    json('arguments', tool.arguments),
    json('result', tool.result),
    json('error', tool.error),
  )
}

function fact(label, value) {
  return value && h('div', {}, h('dt', {}, label), h('dd', {}, name(value, 400)))
}

function json(label, value) {
  return (
    value !== undefined &&
    h('figure', {}, h('figcaption', {}, label), h('pre', { class: 'data', tabindex: 0, 'aria-label': label }, clip(pretty(value), LONG)))
  )
}
