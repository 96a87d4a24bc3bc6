/**
 * What a run was created from, and when things happened to it.
 */

import { h, replace } from '../dom.js'
import { runPlace, sessionPlace } from '../router.js'
import { clip, name, pretty } from '../text.js'
import { full } from '../time.js'
import { copyable } from './copy.js'

const LONG = 20_000

/** `{element, update(run)}`. */
export function factsPanel() {
  const list = h('dl', { class: 'facts' })
  const given = h('pre', { class: 'data', tabindex: 0, 'aria-label': 'Input' })
  const element = h(
    'section',
    { class: 'panel', 'aria-labelledby': 'facts-title' },
    h('header', {}, h('h2', { id: 'facts-title' }, 'Facts')),
    list,
    h('figure', {}, h('figcaption', {}, 'input'), given),
  )
  let shown = ''

  function update(run) {
    const looks = [run.state, run.attempt, run.started_at, run.finished_at, Object.entries(run.resources ?? {}).join()].join('|')
    if (looks === shown) return
    shown = looks
    given.textContent = clip(pretty(run.input), LONG)
    replace(
      list,
      fact('run', copyable(run.run_id, 'run id')),
      fact('session', run.session_id && h('a', { href: sessionPlace(run.session_id) }, name(run.session_id))),
      fact('parent', run.parent_run_id && h('a', { href: runPlace(run.parent_run_id) }, name(run.parent_run_id))),
      fact('by', name(run.initiator)),
      fact('scope', name(run.resource_scope)),
      fact('release', name(run.release_id)),
      fact('attempt', run.attempt || null),
      fact('created', full(run.created_at)),
      fact('started', run.started_at && full(run.started_at)),
      fact('ended', run.finished_at && full(run.finished_at)),
      fact('kept until', run.expires_at && full(run.expires_at)),
      Object.entries(run.resources ?? {}).map(([resource, version]) =>
        fact('resource', copyable(`${resource}:${version}`, 'resource version')),
      ),
    )
  }

  return { element, update }
}

function fact(label, value) {
  return value !== null && value !== undefined && value !== '' && h('div', {}, h('dt', {}, label), h('dd', {}, value))
}
