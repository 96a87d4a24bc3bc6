/**
 * A run's state, as a mark and a word. The mark's form differs from state to state, so that nothing hangs on colour alone.
 */

import { h, say, svg } from '../dom.js'
import { STATE_MEANS } from '../words.js'

const FORMS = {
  queued: () => [svg('circle', { cx: 6, cy: 6, r: 4.25, class: 'line dashed' })],
  running: () => [
    svg('circle', { cx: 6, cy: 6, r: 4.25, class: 'line faint' }),
    svg('path', { d: 'M6 1.75A4.25 4.25 0 0 1 10.25 6', class: 'line turn' }),
  ],
  waiting: () => [svg('path', { d: 'M4 2.5v7M8 2.5v7', class: 'line' })],
  succeeded: () => [svg('path', { d: 'M2 6.4l2.7 2.7L10 3.4', class: 'line' })],
  failed: () => [svg('path', { d: 'M2.8 2.8l6.4 6.4M9.2 2.8L2.8 9.2', class: 'line' })],
  cancelled: () => [svg('circle', { cx: 6, cy: 6, r: 4.25, class: 'line' }), svg('path', { d: 'M3 9l6-6', class: 'line' })],
}

/** A state that can change: `{element, update(state)}`. */
export function stateTag(state) {
  const mark = svg('svg', { viewBox: '0 0 12 12', class: 'state-mark', 'aria-hidden': 'true' })
  const word = h('span')
  const element = h('span', { class: 'state' }, mark, word)
  const update = now => {
    if (element.dataset.state === now) return
    element.dataset.state = now
    element.title = STATE_MEANS[now] ?? ''
    mark.replaceChildren(...(FORMS[now]?.() ?? []))
    say(word, now)
  }
  update(state)
  return { element, update }
}
