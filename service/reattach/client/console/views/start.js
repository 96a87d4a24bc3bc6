/**
 * The page that starts a run.
 */

import { h } from '../dom.js'
import { startForm } from '../parts/start-form.js'
import { runPlace } from '../router.js'

/** @returns {import("../main.js").View} */
export function startView({ query }) {
  const session = query.get('session_id') ?? ''
  const form = startForm({
    agent: query.get('agent') ?? '',
    input: query.get('input') ?? '',
    session,
    started: run => (location.hash = runPlace(run.run_id)),
  })
  const element = h(
    'div',
    { class: 'page narrow' },
    h('h1', { tabindex: -1 }, 'Start a run'),
    h(
      'p',
      { class: 'lead' },
      'A worker that knows the agent takes it from the queue. You can close this page: the run goes on, and is in the list.',
    ),
    form.element,
  )
  return { element, title: 'Start a run', dispose: form.dispose }
}
