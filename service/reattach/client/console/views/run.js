/**
 * One run, live: what it says, what it does, what it waits for, how it ended, and every event of it.
 */

import { announce } from '../announce.js'
import { followRun } from '../api.js'
import { h, replace, say } from '../dom.js'
import { connectionPanel } from '../parts/connection.js'
import { copyable } from '../parts/copy.js'
import { factsPanel } from '../parts/facts.js'
import { logView } from '../parts/log.js'
import { conversation } from '../parts/message.js'
import { emptyNote, problemNote } from '../parts/notes.js'
import { outcomeCard } from '../parts/outcome.js'
import { stateTag } from '../parts/state.js'
import { stopping } from '../parts/stop.js'
import { tabs } from '../parts/tabs.js'
import { toolTimeline } from '../parts/tools.js'
import { waitCard } from '../parts/wait.js'
import { sessionPlace } from '../router.js'
import { many, name } from '../text.js'
import { duration, everySecond } from '../time.js'
import { hasEnded } from '../words.js'

/** @returns {import("../main.js").View} */
export function runView({ id }) {
  const live = followRun(id)
  const title = h('h1', { tabindex: -1 }, 'Run')
  const state = stateTag('queued')
  const meta = h('p', { class: 'meta' })
  const stop = stopping()
  const wait = waitCard()
  const talk = conversation()
  const outcome = outcomeCard()
  const tools = toolTimeline()
  const link = connectionPanel(live)
  const facts = factsPanel()
  const log = logView(id)
  const quiet = h('p', { class: 'quiet-note', hidden: true })
  const command = h(
    'p',
    { class: 'quiet-note', hidden: true },
    'Where none takes it, start one that knows this agent: ',
    h('code', { class: 'code' }, 'reattach work MODULE:AGENTS'),
  )
  const said = h('div', { class: 'stream' }, talk.element, quiet, command, outcome.element)
  const panes = tabs('Run', [
    { name: 'Conversation', element: said },
    { name: 'Log', element: log.element, shown: log.shown },
  ])
  const head = h(
    'div',
    { class: 'run-head' },
    h('div', { class: 'run-title' }, title, state.element, h('span', { class: 'grow' }), stop.button),
    meta,
  )
  const rail = h('aside', { class: 'rail', 'aria-label': 'About this run' }, link.element, tools.element, facts.element)
  const content = h('div', { class: 'run', hidden: true }, h('div', { class: 'run-main' }, wait.element, stop.notice, panes.element), rail)
  const trouble = h('div')
  const element = h('div', { class: 'page wide' }, head, trouble, content, stop.dialog)
  state.element.hidden = stop.button.hidden = true
  let run = null
  let frame = 0
  let problem = null

  function draw() {
    frame = 0
    const now = live.getSnapshot()
    const error = now.error ?? now.connection.error
    if (error !== problem)
      replace(trouble, (problem = error) && now.connection.state !== 'live' && !(now.run && error.status === 0) && refusal(error, id))
    if (!now.run) return
    const sticky = atEnd(said)
    if (run && run.state !== now.run.state && hasEnded(now.run.state))
      announce(`The run has ${now.run.state === 'cancelled' ? 'been ' : ''}${now.run.state}.`)
    run = now.run
    state.element.hidden = content.hidden = false
    say(title, name(run.agent))
    entitle(run)
    state.update(run.state)
    stop.update(run)
    wait.update(run)
    talk.update(run.messages)
    outcome.update(run)
    tools.update(run)
    facts.update(run)
    log.update(run, now.events)
    link.update(run.sequence, now.connection, now.counters)
    panes.label('Log', many(run.sequence, 'event'))
    say(quiet, silence(run))
    quiet.hidden = quiet.textContent === ''
    command.hidden = run.state !== 'queued' || run.attempt > 0
    tick()
    if (sticky && !hasEnded(run.state)) toEnd(said)
  }

  function tick() {
    link.tick()
    if (!run) return
    wait.tick()
    if (!hasEnded(run.state)) tools.tick(run)
    replaceMeta(meta, run)
  }

  const unsubscribe = live.subscribe(() => {
    frame ||= requestAnimationFrame(draw)
    // A page in the background is not drawn, but its title is read.
    if (document.hidden && live.getSnapshot().run) entitle(live.getSnapshot().run)
  })
  const stopTicking = everySecond(tick)
  draw()

  function dispose() {
    unsubscribe()
    stopTicking()
    cancelAnimationFrame(frame)
    log.dispose()
    live.close()
  }

  return { element, title: 'Run', nav: 'runs', dispose }
}

function entitle(run) {
  document.title = `${name(run.agent)}, ${run.state} · Reattach`
}

function replaceMeta(meta, run) {
  const end = run.finished_at ? Date.parse(run.finished_at) : Date.now()
  const took = run.started_at
    ? `${hasEnded(run.state) ? 'took' : 'for'} ${duration(Math.max(0, end - Date.parse(run.started_at)))}`
    : 'not started'
  const words = [took, run.attempt > 1 ? `attempt ${run.attempt}` : '', many(run.sequence, 'event')].filter(Boolean).join(' · ')
  if (!meta.firstChild) {
    replace(
      meta,
      copyable(run.run_id, 'run id'),
      h('span', { class: 'words' }),
      run.session_id && h('a', { href: sessionPlace(run.session_id) }, 'session ', name(run.session_id, 60)),
    )
  }
  say(meta.querySelector('.words'), words)
}

function silence(run) {
  if (run.messages.length > 0) return ''
  if (run.state === 'queued') return 'Waiting for a worker.'
  return hasEnded(run.state) ? 'It ended without saying anything.' : run.state === 'waiting' ? '' : 'It has not said anything yet.'
}

function refusal(error, id) {
  if (error.status === 404) {
    return emptyNote(
      'There is no such run',
      `${name(id, 60)} does not exist, is no longer kept, or is not yours to see.`,
      h('a', { class: 'button primary', href: '#/' }, 'To the runs'),
    )
  }
  return problemNote(error, 'This run cannot be shown', () => location.reload())
}

/** Whether the end of what is said is in sight, so that it is to stay there. */
function atEnd(said) {
  const { bottom, height } = said.getBoundingClientRect()
  return height > 0 && bottom <= innerHeight + 40 && bottom > innerHeight * 0.4
}

function toEnd(said) {
  const over = said.getBoundingClientRect().bottom - innerHeight + 32
  if (over > 0) scrollBy(0, over)
}
