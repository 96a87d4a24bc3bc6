/**
 * One run, live: what it says, what it does, what it waits for, how it ended, and every event of it.
 */

import { announce } from '../announce.js'
import { followRun } from '../api.js'
import { h } from '../dom.js'
import { connectionPanel } from '../parts/connection.js'
import { factsPanel } from '../parts/facts.js'
import { logView } from '../parts/log.js'
import { runHead } from '../parts/run-head.js'
import { stopping } from '../parts/stop.js'
import { runStream } from '../parts/stream.js'
import { tabs } from '../parts/tabs.js'
import { toolTimeline } from '../parts/tools.js'
import { troubles } from '../parts/trouble.js'
import { waitCard } from '../parts/wait.js'
import { many, name } from '../text.js'
import { everySecond } from '../time.js'
import { hasEnded } from '../words.js'

/** @returns {import("../main.js").View} */
export function runView({ id }) {
  const live = followRun(id)
  const trouble = troubles({
    title: 'This run cannot be shown',
    missing: {
      title: 'There is no such run',
      text: `${name(id, 60)} does not exist, is no longer kept, or is not yours to see.`,
      way: h('a', { class: 'button primary', href: '#/' }, 'To the runs'),
    },
    again: () => live.reload(),
  })
  const stop = stopping()
  const head = runHead(stop.button)
  const wait = waitCard()
  const stream = runStream()
  const log = logView(id)
  const link = connectionPanel(live)
  const tools = toolTimeline()
  const facts = factsPanel()
  const panes = tabs('Run', [
    { name: 'Conversation', element: stream.element },
    { name: 'Log', element: log.element, shown: log.shown },
  ])
  const rail = h('aside', { class: 'rail', 'aria-label': 'About this run' }, link.element, tools.element, facts.element)
  const content = h('div', { class: 'run', hidden: true }, h('div', { class: 'run-main' }, wait.element, stop.notice, panes.element), rail)
  const element = h('div', { class: 'page wide' }, head.element, trouble.element, content, stop.dialog, link.afloat)
  let run = null
  let frame = 0

  function draw() {
    frame = 0
    const now = live.getSnapshot()
    trouble.update(now, now.run !== null)
    if (!now.run) return
    if (run && run.state !== now.run.state) tellEnd(now.run.state)
    run = now.run
    content.hidden = false
    entitle(run)
    for (const part of [head, stop, wait, stream, tools, facts]) part.update(run)
    log.update(run, now.events)
    link.update(run.sequence, now.connection, now.counters)
    panes.label('Log', many(run.sequence, 'event'))
  }

  function tick() {
    link.tick()
    if (!run || hasEnded(run.state)) return
    head.tick(run)
    wait.tick()
    tools.tick(run)
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

function tellEnd(state) {
  if (hasEnded(state)) announce(`The run has ${state === 'cancelled' ? 'been ' : ''}${state}.`)
}
