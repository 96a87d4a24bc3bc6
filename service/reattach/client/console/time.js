/**
 * Times for people. Everything that is compared with "now" ticks once a second, in one place, and only while somebody looks.
 */

const DAY = new Intl.DateTimeFormat('en', { month: 'short', day: 'numeric' })
const FULL = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'medium' })
const UNITS = [
  [86_400, 'd'],
  [3600, 'h'],
  [60, 'min'],
  [1, 's'],
]

/** @type {Set<() => void>} */
const listeners = new Set()
let timer = 0

/**
 * Call a function now and about once a second, while the page is visible.
 *
 * @param {() => void} listener
 * @returns {() => void} Ends that.
 */
export function everySecond(listener) {
  listeners.add(listener)
  listener()
  timer ||= start()
  return () => {
    listeners.delete(listener)
    if (listeners.size === 0) {
      clearInterval(timer)
      document.removeEventListener('visibilitychange', tick)
      timer = 0
    }
  }
}

function start() {
  document.addEventListener('visibilitychange', tick)
  return setInterval(tick, 1000)
}

function tick() {
  if (document.hidden) return
  for (const listener of listeners) listener()
}

/** Milliseconds → `850 ms`, `4.2 s`, `3 min 20 s`, `2 h 5 min`. */
export function duration(ms) {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`
  if (ms < 9950) return `${(ms / 1000).toFixed(1)} s`
  const seconds = Math.round(ms / 1000)
  const at = UNITS.findIndex(([unit]) => seconds >= unit)
  const [unit, word] = UNITS[at]
  const rest = UNITS[at + 1]
  const left = rest ? Math.floor((seconds % unit) / rest[0]) : 0
  return `${Math.floor(seconds / unit)} ${word}${left ? ` ${left} ${rest[1]}` : ''}`
}

/** How long ago, in one word or two. */
export function ago(ms) {
  if (ms < 5000) return 'just now'
  const seconds = Math.round(ms / 1000)
  const [unit, word] = UNITS.find(([each]) => seconds >= each)
  return `${Math.floor(seconds / unit)} ${word} ago`
}

/** A countdown: `4:09`, `1:02:11`. */
export function countdown(ms) {
  const seconds = Math.max(0, Math.ceil(ms / 1000))
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60]
  const [first, ...rest] = parts[0] ? parts : parts.slice(1)
  return [String(first), ...rest.map(part => String(part).padStart(2, '0'))].join(':')
}

/** The time of day, to the millisecond, as logs have it. */
export function clock(text) {
  const date = new Date(text)
  return Number.isNaN(date.valueOf()) ? text : `${date.toTimeString().slice(0, 8)}.${String(date.getMilliseconds()).padStart(3, '0')}`
}

/** The whole date and time. */
export function full(text) {
  const date = new Date(text)
  return Number.isNaN(date.valueOf()) ? text : FULL.format(date)
}

/** What `ago` says of a date: relative for a day, then the date. */
export function since(text) {
  const passed = Date.now() - Date.parse(text)
  return passed < 86_400_000 ? ago(passed) : DAY.format(new Date(text))
}
