/**
 * The console: shows the place that the address names, and the next one when it changes.
 */

import { onUnauthenticated } from './api.js'
import { announce } from './announce.js'
import { replace } from './dom.js'
import { read } from './router.js'
import { onToken, setToken, token } from './token.js'
import { lostView } from './views/lost.js'
import { runView } from './views/run.js'
import { runsView } from './views/runs.js'
import { sessionView } from './views/session.js'
import { sessionsView } from './views/sessions.js'
import { signInView } from './views/sign-in.js'
import { startView } from './views/start.js'

/** @typedef {{element: Element, title: string, nav?: string, dispose?: () => void, moved?: (place: any) => boolean}} View */

const VIEWS = { runs: runsView, run: runView, sessions: sessionsView, session: sessionView, start: startView, lost: lostView }
const main = document.querySelector('#main')
const signOut = document.querySelector('#sign-out')

/** @type {View | null} */
let shown = null
let first = true
let asked = false

function show(view) {
  shown?.dispose?.()
  shown = view
  replace(main, view.element)
  document.title = view.title ? `${view.title} · Reattach` : 'Reattach'
  for (const link of document.querySelectorAll('[data-nav]')) {
    if (link.dataset.nav === view.nav) link.setAttribute('aria-current', 'page')
    else link.removeAttribute('aria-current')
  }
  // A page that was asked for is begun at its heading; the first one is begun where the browser begins.
  if (!first) {
    scrollTo(0, 0)
    main.querySelector('h1')?.focus({ preventScroll: true })
    announce(document.title)
  }
  first = false
}

function go() {
  const place = read(location.hash)
  if (shown?.moved?.(place)) return
  asked = false
  show(VIEWS[place.name](place))
}

function askForToken(problem) {
  if (asked) return
  asked = true
  show(signInView(problem))
}

function credentials() {
  signOut.hidden = token() === ''
  go()
}

addEventListener('hashchange', go)
onUnauthenticated(askForToken)
onToken(credentials)
signOut.addEventListener('click', () => setToken(''))
signOut.hidden = token() === ''
document.querySelector('.skip').addEventListener('click', event => {
  event.preventDefault()
  const beginning = main.querySelector('h1') ?? main
  beginning.focus()
})
go()
