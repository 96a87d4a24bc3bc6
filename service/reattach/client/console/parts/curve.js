/**
 * Events over time, as they arrive here: a line that climbs while events come, rests while the connection is gone, and makes up for it when
 * it is back.
 */

import { svg } from '../dom.js'

const WIDTH = 320
const HEIGHT = 64
const INSET = 5
/** How much of the past is shown, milliseconds: at first little, then more, then what is old leaves. */
const SHORTEST = 12_000
const LONGEST = 60_000
const MOST = 600

/** `{element, add(sequence, connected), draw()}`; times are the browser's. */
export function arrivalCurve() {
  const area = svg('path', { class: 'curve-area' })
  const gaps = svg('g', { class: 'curve-gaps' })
  const line = svg('path', { class: 'curve-line' })
  const dot = svg('circle', { class: 'curve-dot', r: 3 })
  const element = svg('svg', { class: 'curve', viewBox: `0 0 ${WIDTH} ${HEIGHT}`, 'aria-hidden': 'true' }, area, gaps, line, dot)
  /** @type {{at: number, sequence: number}[]} */
  const samples = []
  /** @type {{from: number, to: number | null}[]} */
  const outages = []

  /** What is known now: up to which event, and whether the connection stands. */
  function add(sequence, connected) {
    const at = performance.now()
    if (sequence > 0 && samples.at(-1)?.sequence !== sequence) samples.push({ at, sequence })
    if (samples.length > MOST) samples.splice(0, samples.length - MOST)
    const open = outages.at(-1)?.to === null ? outages.at(-1) : null
    if (!connected && !open) outages.push({ from: at, to: null })
    if (connected && open) open.to = at
  }

  /** Show the last while. */
  function draw() {
    if (samples.length === 0) return
    const now = performance.now()
    const span = Math.min(LONGEST, Math.max(SHORTEST, now - samples[0].at))
    const from = now - span
    while (outages.length > 0 && outages[0].to !== null && outages[0].to < from) outages.shift()
    // One sample before what is shown says where the line comes from.
    while (samples.length > 1 && samples[1].at < from) samples.shift()
    const low = samples[0].sequence
    const high = Math.max(samples.at(-1).sequence, low + 1)
    const x = at => Math.max(0, ((at - from) / span) * (WIDTH - INSET))
    const y = sequence => HEIGHT - INSET - ((sequence - low) / (high - low)) * (HEIGHT - 2 * INSET)
    const start = x(samples[0].at).toFixed(1)
    let path = `M${start} ${y(low).toFixed(1)}`
    for (const sample of samples.slice(1)) path += `H${x(sample.at).toFixed(1)}V${y(sample.sequence).toFixed(1)}`
    const end = x(now).toFixed(1)
    path += `H${end}`
    line.setAttribute('d', path)
    area.setAttribute('d', `${path}V${HEIGHT}H${start}Z`)
    dot.setAttribute('cx', end)
    dot.setAttribute('cy', y(samples.at(-1).sequence).toFixed(1))
    gaps.replaceChildren(...outages.map(outage => band(x(outage.from), x(outage.to ?? now))))
  }

  return { element, add, draw }
}

function band(from, to) {
  return svg('rect', { x: from.toFixed(1), y: 0, width: Math.max(1, to - from).toFixed(1), height: HEIGHT })
}
