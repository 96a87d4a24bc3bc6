/**
 * What stands in place of a run or a session that cannot be had, or above one that is not followed any more.
 */

import { h, replace } from '../dom.js'
import { emptyNote, problemNote } from './notes.js'

/**
 * `{element, update(view, there)}`.
 *
 * @param {{title: string, missing: {title: string, text: string, way: Element}, again: () => void}} about `title`: that it cannot be shown.
 *   `missing`: that there is none, and the way out. `again`: asks once more.
 */
export function troubles({ title, missing, again }) {
  const element = h('div')
  let shown = null

  // What is there already stays in sight while it cannot be reached: the connection's panel says so.
  function update({ error, connection }, there) {
    const now = there && connection.state !== 'refused' ? null : (error ?? connection.error)
    if (now === shown) return
    shown = now
    if (now?.status === 404 && !there) replace(element, emptyNote(missing.title, missing.text, missing.way))
    else replace(element, now && problemNote(now, title, again))
  }

  return { element, update }
}
