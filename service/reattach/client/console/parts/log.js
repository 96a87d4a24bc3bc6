/**
 * The raw log, a line for each event. Only the lines in sight are in the document, however many there are.
 */

import { h, replace } from '../dom.js'
import { LogSource } from '../log-source.js'
import { clip, count, name, pretty, visible } from '../text.js'
import { clock } from '../time.js'
import { problemText } from '../words.js'

const ROW = 30
const AROUND = 8
/** Browsers have an end to how tall an element may be. */
const MOST = 400_000
const LONG = 60_000

/** `{element, update(run, events), shown(), dispose()}`. */
export function logView(runId) {
  const source = new LogSource(runId, () => draw())
  const rows = h('div', { class: 'log-rows', role: 'presentation' })
  const box = h(
    'div',
    {
      class: 'log',
      role: 'listbox',
      tabindex: 0,
      'aria-label': 'Events',
      onscroll: scrolled,
      onkeydown: pressed,
      onclick: clicked,
    },
    rows,
  )
  const follow = h('input', { type: 'checkbox', id: 'log-follow', checked: true, onchange: () => (draw(), stick()) })
  const help = h('span', { class: 'help' }, 'Choose a line to see the whole event.')
  const detail = h('div', { class: 'log-detail' })
  const element = h(
    'div',
    { class: 'log-box' },
    h('div', { class: 'log-head' }, help, h('label', { class: 'check', for: 'log-follow' }, follow, 'Follow')),
    box,
    detail,
  )
  let latest = 0
  let taken = 0
  let chosen = 0
  let asked = 0
  follow.checked = true

  function first() {
    return Math.max(1, latest - MOST + 1)
  }

  function update(run, events) {
    take(events)
    if (run.sequence === latest) return
    latest = run.sequence
    rows.style.setProperty('height', `${Math.min(latest, MOST) * ROW}px`)
    if (follow.checked) stick()
    draw()
  }

  // The window of the latest events comes again with every change; only its new end is news.
  function take(events) {
    let at = events.length
    while (at > 0 && events[at - 1].sequence > taken) at -= 1
    if (at === events.length) return
    taken = events.at(-1).sequence
    source.put(events.slice(at))
  }

  function stick() {
    if (follow.checked) box.scrollTop = box.scrollHeight
  }

  function scrolled() {
    const end = box.scrollHeight - box.clientHeight - box.scrollTop
    if (end > ROW * 2) follow.checked = false
    else if (end < 2) follow.checked = true
    draw()
  }

  function draw() {
    if (box.clientHeight === 0 || latest === 0) return
    const from = Math.max(first(), first() + Math.floor(box.scrollTop / ROW) - AROUND)
    const to = Math.min(latest, from + Math.ceil(box.clientHeight / ROW) + 2 * AROUND)
    const wanted = []
    for (let sequence = from; sequence <= to; sequence += 1) wanted.push(row(sequence, source.at(sequence, latest)))
    rows.replaceChildren(...wanted)
    if (chosen >= from && chosen <= to) box.setAttribute('aria-activedescendant', idOf(chosen))
    else box.removeAttribute('aria-activedescendant')
  }

  function row(sequence, found) {
    const known = typeof found === 'object'
    const element = h(
      'div',
      {
        class: known ? 'log-row' : 'log-row faint',
        role: 'option',
        id: idOf(sequence),
        'data-sequence': sequence,
        'aria-selected': String(sequence === chosen),
        'aria-posinset': sequence - first() + 1,
        'aria-setsize': Math.min(latest, MOST),
      },
      h('span', { class: 'log-sequence' }, count(sequence)),
      h('span', { class: 'log-at' }, known ? clock(found.at) : ''),
      h('span', { class: 'log-type' }, known ? name(found.type, 64) : found === 'gone' ? 'no longer kept' : '…'),
      h('span', { class: 'log-preview' }, known ? found.preview : ''),
    )
    if (known) element.dataset.family = family(found.type)
    element.style.setProperty('transform', `translateY(${(sequence - first()) * ROW}px)`)
    return element
  }

  function pressed(event) {
    const page = Math.max(1, Math.floor(box.clientHeight / ROW) - 1)
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }
    if (!(event.key in steps) || event.ctrlKey || event.metaKey || event.altKey) return
    event.preventDefault()
    const start = chosen || (steps[event.key] > 0 ? Math.floor(box.scrollTop / ROW) + first() - 1 : latest + 1)
    choose(Math.min(latest, Math.max(first(), start + steps[event.key])))
  }

  function clicked(event) {
    const at = event.target.closest('[data-sequence]')
    if (at) choose(Number(at.dataset.sequence))
  }

  function choose(sequence) {
    chosen = sequence
    follow.checked = sequence === latest && follow.checked
    reveal()
    open(sequence)
  }

  function reveal() {
    const top = (chosen - first()) * ROW
    if (top < box.scrollTop) box.scrollTop = top
    else if (top + ROW > box.scrollTop + box.clientHeight) box.scrollTop = top + ROW - box.clientHeight
    draw()
  }

  async function open(sequence) {
    const mine = ++asked
    const found = source.at(sequence, latest)
    if (found === 'gone')
      return show(h('p', { class: 'faint' }, `Event ${count(sequence)} is no longer kept. What it said is in the snapshot.`))
    if (typeof found === 'object' && found.event) show(eventText(found.event))
    try {
      // Asked for also when it is here: the stored text has every digit.
      const event = await source.whole(sequence)
      if (mine === asked && event) show(eventText(event))
    } catch (error) {
      if (mine === asked && !detail.hasChildNodes()) show(h('p', { class: 'faint' }, visible(problemText(error))))
    }
  }

  function show(what) {
    const empty = !detail.hasChildNodes()
    replace(detail, what)
    element.classList.add('with-detail')
    if (empty) reveal()
  }

  return { element, update, shown: () => (stick(), draw()), held: () => source.held, dispose: () => source.close() }
}

function idOf(sequence) {
  return `event-${sequence}`
}

function family(type) {
  return type.slice(0, type.indexOf('.'))
}

function eventText(event) {
  return h('pre', { class: 'data', tabindex: 0, 'aria-label': `Event ${event.sequence}` }, clip(pretty(event), LONG))
}
