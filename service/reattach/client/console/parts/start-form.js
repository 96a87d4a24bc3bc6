/**
 * The fields of a new run: agent, input, session.
 */

import { listRuns, newKey, startRun } from '../api.js'
import { h } from '../dom.js'
import { typed } from '../exact.js'
import { problemNote } from './notes.js'

const DEMO = { agent: 'support', input: '{"ticket": 981}' }

/**
 * Agent, input and session of a new run.
 *
 * @param {{agent?: string, input?: string, session?: string, fixed?: boolean, started: (run: any) => void}} options
 *   `fixed`: the session is not to be chosen.
 */
export function startForm({ agent = '', input = '', session = '', fixed = false, started }) {
  const known = h('datalist', { id: 'agents' })
  const agentField = h('input', {
    id: 'agent',
    required: true,
    list: 'agents',
    autocomplete: 'off',
    autocapitalize: 'none',
    spellcheck: 'false',
    maxlength: 64,
    class: 'wide',
    pattern: '[a-z0-9][a-z0-9._\\-]{0,63}',
    title: 'lower-case letters, digits, points, hyphens and underscores',
  })
  const inputField = h('textarea', {
    id: 'input',
    rows: 6,
    class: 'mono wide',
    spellcheck: 'false',
    'aria-describedby': 'input-help input-error',
  })
  const sessionField = h('input', {
    id: 'session',
    autocomplete: 'off',
    spellcheck: 'false',
    maxlength: 128,
    class: 'wide',
    'aria-describedby': 'session-help',
  })
  const wrong = h('p', { class: 'error', id: 'input-error', 'aria-live': 'polite' })
  const refused = h('div')
  const button = h('button', { class: 'button primary' }, 'Start')
  const abort = new AbortController()
  let intention = { text: '', key: '' }

  agentField.value = agent
  inputField.value = input
  sessionField.value = session
  suggest()

  async function suggest() {
    try {
      const { runs } = await listRuns({ limit: 50 }, abort.signal)
      const agents = [...new Set(runs.map(run => run.agent))].sort()
      known.replaceChildren(...agents.map(each => h('option', { value: each })))
      prefill(agents.length === 0 || agents.includes(DEMO.agent) ? DEMO : { agent: agents[0], input: '{}' })
    } catch {
      prefill(DEMO)
    }
  }

  function prefill(given) {
    if (agentField.value === '' && inputField.value === '') {
      agentField.value = given.agent
      inputField.value = given.input
    } else if (inputField.value === '') {
      inputField.value = agentField.value === DEMO.agent ? DEMO.input : '{}'
    }
  }

  function check() {
    const read = typed(inputField.value)
    const error = read.error ?? (isObject(read.value) ? '' : "An agent's input is a JSON object: {…}.")
    wrong.textContent = error
    inputField.setAttribute('aria-invalid', String(error !== ''))
    return error ? undefined : read.value
  }

  async function submit(event) {
    event.preventDefault()
    const value = check()
    if (value === undefined) return inputField.focus()
    const body = {
      agent: agentField.value.trim(),
      input: value,
      ...(sessionField.value.trim() ? { session_id: sessionField.value.trim() } : {}),
    }
    // The same form sent twice, e.g. after a lost answer, finds the run that the first one started.
    const text = JSON.stringify(body)
    if (text !== intention.text) intention = { text, key: newKey() }
    button.disabled = true
    refused.replaceChildren()
    try {
      const run = await startRun(body, intention.key)
      intention = { text: '', key: '' }
      started(run)
    } catch (error) {
      refused.replaceChildren(problemNote(error, 'The run was not started'))
    } finally {
      button.disabled = false
    }
  }

  const element = h(
    'form',
    { class: 'stack', onsubmit: submit },
    h('label', { for: 'agent' }, 'Agent'),
    agentField,
    known,
    h('label', { for: 'input' }, 'Input'),
    inputField,
    h('p', { class: 'help', id: 'input-help' }, "A JSON object. What is in it is the agent's business."),
    wrong,
    !fixed && [
      h('label', { for: 'session' }, 'Session ', h('span', { class: 'optional' }, 'optional')),
      sessionField,
      h('p', { class: 'help', id: 'session-help' }, 'Runs of one conversation carry the same session.'),
    ],
    refused,
    h('div', { class: 'actions' }, button),
  )
  inputField.addEventListener('input', () => wrong.textContent && check())
  return { element, dispose: () => abort.abort() }
}

function isObject(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
