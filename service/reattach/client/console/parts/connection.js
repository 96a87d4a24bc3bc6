/**
 * The connection of this page: what it does, what it had to repair, and a way to break it on purpose.
 */

import { announce } from '../announce.js'
import { h, say } from '../dom.js'
import { count, many } from '../text.js'
import { CONNECTION } from '../words.js'
import { arrivalCurve } from './curve.js'

const CUT = 6000
const MOMENT = 300
const BROKEN = new Set(['retrying', 'offline', 'cut'])
const OVER = new Set(['ended', 'closed', 'refused'])

/**
 * `{element, afloat, update(sequence, connection, counters), tick()}`.
 *
 * @param {{cut: (ms: number) => void, nudge: () => void}} live What is connected.
 */
export function connectionPanel(live) {
  const state = h('span', { class: 'link-state' })
  const curve = arrivalCurve()
  const numbers = {
    events: number('last event'),
    resumes: number('resumes'),
    duplicates: number('duplicates dropped'),
    gaps: number('gaps repaired'),
  }
  const button = h('button', { type: 'button', class: 'button small', onclick: cut }, 'Cut the network')
  const help = h(
    'p',
    { class: 'help' },
    'Cuts this page off for six seconds, as a tunnel does. The run does not notice; watch the page catch up.',
  )
  const breaking = h('div', { class: 'cut' }, button, help)
  const element = h(
    'section',
    { class: 'panel link', 'aria-labelledby': 'link-title' },
    h('header', {}, h('h2', { id: 'link-title' }, 'Connection'), state),
    curve.element,
    h(
      'dl',
      { class: 'numbers' },
      Object.values(numbers).map(each => each.element),
    ),
    breaking,
  )
  // Where the panel is out of sight, that the connection is gone is not.
  const afloat = h('p', { class: 'afloat', hidden: true, 'aria-hidden': 'true' })
  const sight = new IntersectionObserver(([{ isIntersecting }]) => afloat.classList.toggle('needless', isIntersecting))
  sight.observe(state)
  let connection = { state: 'connecting' }
  let before = 'connecting'

  function update(sequence, next, counters) {
    connection = next
    const now = stateOf(next)
    if (now !== before) tell(before, now, counters)
    before = now
    element.dataset.state = now
    numbers.events.set(sequence)
    numbers.resumes.set(counters.resumes)
    numbers.duplicates.set(counters.duplicates)
    numbers.gaps.set(counters.gaps)
    if (!OVER.has(now)) curve.add(sequence, !BROKEN.has(now))
    breaking.hidden = OVER.has(now)
    tick()
  }

  function tick() {
    const left = connection.retryAt ? Math.ceil((connection.retryAt - Date.now()) / 1000) : 0
    const broken = BROKEN.has(before)
    say(state, `${CONNECTION[before] ?? before}${detail(broken && left > 0 ? left : 0)}`)
    say(button, before === 'cut' ? 'Mend it now' : 'Cut the network')
    afloat.hidden = !broken
    if (broken) say(afloat, `${state.textContent}. The run goes on.`)
    if (!OVER.has(before)) curve.draw()
  }

  function detail(left) {
    if (left) return `, back in ${left} s`
    return before === 'live' && connection.shared && !connection.leader ? ', through another tab' : ''
  }

  function cut() {
    const mend = before === 'cut'
    live.cut(mend ? 0 : CUT)
    // A connection that was tried a moment ago is not tried again at once.
    if (mend) setTimeout(() => live.nudge(), MOMENT)
  }

  return { element, afloat, update, tick }
}

/** What a connection is to a person. One that is broken on purpose stays so while it is tried again meanwhile. */
function stateOf({ state, reason }) {
  if (state === 'retrying' && reason === 'cut') return 'cut'
  return state === 'idle' ? 'connecting' : state
}

function tell(before, now, { resumes }) {
  if (now === 'live' && resumes > 0) announce(`Connected again, ${many(resumes, 'resume')} so far. Nothing is missing.`)
  else if (BROKEN.has(now) && !BROKEN.has(before)) announce('The connection is gone. The run goes on, and this page comes back to it.')
}

function number(label) {
  const value = h('dd', {}, '0')
  return { element: h('div', {}, h('dt', {}, label), value), set: next => say(value, count(next)) }
}
