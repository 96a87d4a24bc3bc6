/**
 * Asks for a token, where the service wants one and no cookie carries it.
 */

import { h } from '../dom.js'
import { visible } from '../text.js'
import { setToken, token } from '../token.js'

/** @returns {import("../main.js").View} */
export function signInView(problem) {
  const refused = token() !== ''
  const input = h('input', {
    id: 'token',
    type: 'password',
    class: 'mono wide',
    required: true,
    autocomplete: 'off',
    spellcheck: 'false',
    'aria-describedby': 'token-help',
  })
  const submit = event => {
    event.preventDefault()
    const given = input.value.trim().replace(/^bearer\s+/i, '')
    if (given) setToken(given)
  }
  const why = problem?.detail ? visible(problem.detail) : ''
  const element = h(
    'div',
    { class: 'page narrow' },
    h('h1', { tabindex: -1 }, refused ? 'This token was not accepted' : 'Who are you?'),
    h(
      'p',
      { class: 'lead' },
      'This service shows runs to those who may see them. Paste a token; it is kept in this tab only, until you close it or sign out.',
    ),
    refused && why && h('p', { class: 'note problem', role: 'alert' }, why),
    h(
      'form',
      { class: 'stack', onsubmit: submit },
      h('label', { for: 'token' }, 'Token'),
      input,
      h(
        'p',
        { class: 'help', id: 'token-help' },
        'A JSON Web Token, three parts with points between them. It is sent to this service only.',
      ),
      h('div', { class: 'actions' }, h('button', { class: 'button primary' }, 'Continue')),
    ),
  )
  return { element, title: 'Sign in' }
}
